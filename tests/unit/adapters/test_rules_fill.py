"""Exports filled in by `local/rules`: values that memories state, null for all others."""

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import EventType, Question
from pipeline.models.json_schema import outline


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean"])
async def test_a_scalar_that_no_memory_fits_is_null(kind: str) -> None:
    shape = outline({"properties": {"shoe_size": {"type": kind}}})
    answer = await RulesModel().distil(
        Question(EventType.EXPORT, {}, shape), ["User lives in Bergen"]
    )
    assert answer.value == {"shoe_size": None}


async def test_a_choice_is_null_and_a_list_is_empty_where_nothing_fits() -> None:
    choice = {"type": "string", "enum": ["red", "blue"]}
    many = {"type": "array", "items": {"type": "string"}}
    shape = outline({"properties": {"colour": choice, "pets": many, "summary": {}}})
    answer = await RulesModel().distil(Question(EventType.EXPORT, {}, shape), [])
    assert answer.value == {"colour": None, "pets": [], "summary": None}
