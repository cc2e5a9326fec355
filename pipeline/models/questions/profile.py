"""Profiles: prompt that asks for each property's value and its memories, and its parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions, Question
from pipeline.domain.usage import Answer
from pipeline.models import prompts
from pipeline.models.json_answers import SHOWN_ERRORS, json_object, validated
from pipeline.models.questions import integer_ids
from pipeline.models.questions.distil import nullable, storable
from pipeline.models.questions.repair import Prompt

LEFT_OUT = "Properties left out of the model's answer as invalid, also after a repair: {}. {}"

NUMBERS = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "numbers of the memories that state the value",
}


Fields: TypeAlias = dict[str, dict[str, Any]]


def profile_prompt(question: Question, memories: Sequence[str]) -> Prompt[Answer[Fields]]:
    """The prompt for the fields of the question's shape, each with the numbers of its memories."""
    form = with_memories(nullable(question.shape))
    text = prompts.render(
        "profile",
        wishes=prompts.wishes(Instructions(question.instructions)),
        form=prompts.form(form),
        memories=integer_ids.numbered(memories),
    )
    parse = partial(fields, shape=form)
    return Prompt("profile", text, form, parse, partial(parse, mend=True))


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


def fields(text: str, shape: Mapping[str, Any], *, mend: bool = False) -> Answer[Fields]:
    """A value and the numbers of its memories for each property of the schema.

    `mend` is for the repaired answer, after which there is no further call: its malformed
    properties are left out, and the note names them.

    Errors: MalformedAnswer if a property is missing or malformed; with `mend` only if no property
    is valid.
    """
    given = json_object(text)
    rows: Fields = {}
    faults = []
    for name in shape["properties"]:
        place = f"property {prompts.quoted(name)}"
        try:
            row = validated(given.get(name), FieldRow, place)
        except MalformedAnswer as error:
            faults.append(str(error) if name in given else f"{place} is missing")
        else:
            rows[name] = {"value": storable(row.value), "memories": row.memories or []}
    if not faults:
        return Answer(rows)
    shown = "; ".join(faults[:SHOWN_ERRORS])
    if not (mend and rows):
        raise MalformedAnswer(shown)
    return Answer(rows, note=LEFT_OUT.format(len(faults), shown))


class FieldRow(BaseModel):
    """A property of the answer: its value, and the numbers of the memories that state it."""

    value: Any
    memories: list[int] | None
