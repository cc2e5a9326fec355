"""Exports and summaries: prompt that asks for an object of the caller's schema, and its parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions, Question
from pipeline.models import prompts
from pipeline.models.json_answers import SHOWN_ERRORS, json_object
from pipeline.models.questions import integer_ids
from pipeline.models.questions.repair import Prompt


def distil_prompt(question: Question, memories: Sequence[str]) -> Prompt[dict[str, Any]]:
    """The prompt for an object of the question's shape; unknown values are null."""
    form = nullable(question.shape)
    text = prompts.render(
        "distil",
        wishes=prompts.wishes(Instructions(question.instructions)),
        form=prompts.form(form),
        memories=integer_ids.numbered(memories),
    )
    return Prompt("distil", text, form, partial(filled, shape=form))


def filled(text: str, shape: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a caller's schema lists, from the answer; other properties are dropped.

    Errors: MalformedAnswer if a property is missing.
    """
    value = json_object(text)
    names = shape["properties"]
    missing = sorted(set(names) - value.keys())
    if missing:
        shown = ", ".join(map(prompts.quoted, missing[:SHOWN_ERRORS]))
        raise MalformedAnswer(f"properties are missing: {shown}")
    return {name: storable(value[name]) for name in names}


def nullable(shape: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with null allowed for every scalar: the answer for an unknown value."""
    match shape["type"]:
        case "object":
            parts = {name: nullable(part) for name, part in shape["properties"].items()}
            return {**shape, "properties": parts}
        case "array":
            items = shape["items"]
            return {**shape, "items": nullable(items) if items["type"] == "object" else items}
        case kind:
            words = {"enum": [*shape["enum"], None]} if "enum" in shape else {}
            return {**shape, "type": [kind, "null"], **words}


def storable(value: Any) -> Any:
    """A copy without characters that PostgreSQL rejects: NUL and unpaired surrogates."""
    match value:
        case str():
            return value.replace("\x00", "").encode(errors="ignore").decode()
        case list():
            return [storable(item) for item in value]
        case dict():
            return {str(storable(key)): storable(item) for key, item in value.items()}
        case _:
            return value
