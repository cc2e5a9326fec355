"""Reduction of a caller's JSON schema to a form that every model can fill."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.adapters.model_rules.fill import fill
from pipeline.domain.errors import InvalidInput
from pipeline.models.json_schema import outline

KEYS = st.sampled_from(
    ["type", "properties", "items", "enum", "$ref", "anyOf", "$defs", "description", "a", "b"]
)
WORDS = st.sampled_from(["object", "array", "string", "integer", "#/$defs/a", "#", "null"])
SCHEMAS = st.recursive(
    WORDS | st.none() | st.integers(),
    lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, SCHEMAS, max_size=4))
def test_any_schema_is_refused_or_can_be_filled(schema: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidInput):
        shape = outline(schema)
        filled = fill(shape, ["User lives in Bern"])
        assert filled.keys() == shape["properties"].keys()


def test_every_property_is_required_and_none_besides() -> None:
    written = outline({"properties": {"a": {"type": ["null", "integer"], "minimum": 3}}})
    assert written == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_only_the_description_and_the_words_allowed_are_kept() -> None:
    colour = {"type": "string", "enum": ["red"], "description": "of the car", "pattern": "x"}
    assert outline({"properties": {"colour": colour}})["properties"]["colour"] == {
        "type": "string",
        "enum": ["red"],
        "description": "of the car",
    }
