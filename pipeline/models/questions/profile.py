"""Profiles: prompt that asks for each property's value and its memories, and its parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions, Question
from pipeline.models import prompts
from pipeline.models.questions import integer_ids
from pipeline.models.questions.distil import filled, nullable
from pipeline.models.questions.repair import Prompt

NUMBERS = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "numbers of the memories that state the value",
}


def profile_prompt(question: Question, memories: Sequence[str]) -> Prompt[dict[str, Any]]:
    """The prompt for the fields of the question's shape, each with the numbers of its memories."""
    form = with_memories(nullable(question.shape))
    text = prompts.render(
        "profile",
        wishes=prompts.wishes(Instructions(question.instructions)),
        form=prompts.form(form),
        memories=integer_ids.numbered(memories),
    )
    return Prompt("profile", text, form, partial(fields, shape=form))


def with_memories(shape: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with an object in the place of each property: its value, and numbers."""

    def field(part: Mapping[str, Any]) -> dict[str, Any]:
        about = {"description": part["description"]} if "description" in part else {}
        return {
            "type": "object",
            **about,
            "properties": {"value": part, "memories": NUMBERS},
            "required": ["value", "memories"],
            "additionalProperties": False,
        }

    return {**shape, "properties": {name: field(p) for name, p in shape["properties"].items()}}


def fields(text: str, shape: Mapping[str, Any]) -> dict[str, Any]:
    """A value and the numbers of its memories for each property of the schema.

    Errors: MalformedAnswer if a property is missing, or has another form.
    """
    rows = filled(text, shape)
    for name, row in rows.items():
        where = f"property {prompts.quoted(name)}"
        numbers = row.get("memories") if isinstance(row, dict) else None
        if not isinstance(numbers, list) or "value" not in row:
            raise MalformedAnswer(f"{where} must be an object with value and memories")
        if not all(isinstance(number, int) for number in numbers):
            raise MalformedAnswer(f"memories of {where} must be numbers")
    return rows
