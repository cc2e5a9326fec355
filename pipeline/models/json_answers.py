"""Parser of a model's answer: finds one JSON object in the text and validates it.

Errors are MalformedAnswer, in words that the model can use to repair its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.domain.errors import MalformedAnswer

Shape = TypeVar("Shape", bound=BaseModel)
SHOWN_ERRORS = 5


def parsed(text: str, shape: type[Shape]) -> Shape:
    """The JSON object in the text, validated as `shape`.

    Errors: MalformedAnswer with the first SHOWN_ERRORS faults; input values are not quoted.
    """
    return validated(json_object(text), shape)


def validated(value: object, shape: type[Shape], *place: str | int) -> Shape:
    """The value, validated as `shape`. `place`: its place in the answer, for the error.

    Errors: MalformedAnswer with the first SHOWN_ERRORS faults; input values are not quoted.
    """
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, (*place, *fault['loc'])))}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)[:SHOWN_ERRORS]
        ]
        raise MalformedAnswer("; ".join(faults)) from None


def valid_rows(
    answer: Mapping[str, Any],
    key: str,
    shape: type[Shape],
    faults: list[str],
    check: Callable[[str, Shape], None] = lambda place, row: None,
) -> list[Shape]:
    """The valid rows of a list of the answer; null is an empty list.

    Adds the fault of each other row to `faults`. `check`: a further check of a row at its place; it
    raises MalformedAnswer.
    """
    values = answer.get(key)
    if values is None and key in answer:
        return []
    if not isinstance(values, list):
        faults.append(f"{key}: {'A list is required' if key in answer else 'Field required'}")
        return []
    rows = []
    for at, value in enumerate(values):
        try:
            row = validated(value, shape, key, at)
            check(f"{key}.{at}", row)
        except MalformedAnswer as error:
            faults.append(str(error))
        else:
            rows.append(row)
    return rows


def json_object(text: str) -> dict[str, Any]:
    """The only JSON object in the text; thoughts, prose or a code fence around it are ignored.

    Errors: MalformedAnswer if there is none, more than one, or if it is broken.
    """
    text = _without_thoughts(text)
    start = _OBJECT.search(text)
    if start is None:
        raise MalformedAnswer("there is no JSON object in it")
    try:
        value, end = _DECODER.raw_decode(text, start.start())
    except json.JSONDecodeError as error:
        raise MalformedAnswer(_broken(error)) from None
    except (RecursionError, ValueError):  # ValueError: a number of more digits than Python reads
        raise MalformedAnswer("the JSON is nested too deeply, or a number too long") from None
    if _OBJECT.search(text, end):
        raise MalformedAnswer("there is more than one JSON object in it")
    return dict(value)


def _without_thoughts(text: str) -> str:
    """The text after the reasoning of the model, whose opening tag may be in the chat template."""
    answer = text.partition("</think>")[2]
    is_thought = not text.lstrip().startswith(("{", "```")) and _OBJECT.search(answer)
    return answer if is_thought else text


# Models write line breaks into strings unescaped.
_DECODER = json.JSONDecoder(strict=False)
_OBJECT = re.compile(r'\{\s*["}]')


def _broken(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return "the JSON breaks off before its end; give a shorter, complete answer"
    return f"the JSON is broken at character {error.pos}: {error.msg}"


@cache
def answer_schema(shape: type[BaseModel]) -> Mapping[str, object]:
    """JSON schema of an answer, in the subset that strict structured output supports.

    Every property is required and no others are allowed. Defaults and length limits are left out:
    the parser checks them.
    Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    return _strict(shape.model_json_schema())


def _strict(schema: Mapping[str, Any]) -> dict[str, object]:
    """The schema, recursively, with only the keywords that strict structured output supports."""
    as_is = ("type", "enum", "$ref")
    strict: dict[str, object] = {key: schema[key] for key in as_is if key in schema}
    for key in ("properties", "$defs"):
        if key in schema:
            strict[key] = {name: _strict(part) for name, part in schema[key].items()}
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(part) for part in schema["anyOf"]]
    if "properties" in schema:
        strict |= {"required": list(schema["properties"]), "additionalProperties": False}
    return strict
