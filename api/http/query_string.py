"""Query strings as clients write them: objects arrive as JSON, or as Python prints them."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import orjson
from starlette.datastructures import QueryParams

from api.http.strict_json import read
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ALIASES, ENTITY_IDS, KIND

# One metadata key in a query string: `metadata[trip]=lisbon` (OpenAPI style deepObject).
DEEP = re.compile(r"metadata\[([^\[\]]+)\]")

# What old clients and the CLI add to every request, and what is no condition.
NO_CONDITION = {"org_id", "project_id", "source", "delete_linked"}
FIELDS = {*KIND, *ALIASES}
OPENS = ("{", "[", "(")


def literal(name: str, said: str) -> Any:
    """The value a client's query string means. Errors: InvalidInput."""
    try:
        return read(said.encode())
    except orjson.JSONDecodeError:
        pass
    try:
        # Only what JSON has: no bytes, sets or Infinity, whatever Python can write.
        return read(json.dumps(ast.literal_eval(said), allow_nan=False).encode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise InvalidInput(f"{name} is neither JSON nor a Python literal of it.") from None


def conditions(query: QueryParams) -> list[dict[str, Any]]:
    """Every condition of a query string, in the language of filters. All must hold.

    Nothing is left out: a condition that is ignored would widen a delete. Errors: InvalidInput.
    """
    found = []
    for name in dict.fromkeys(query.keys()):
        if name in NO_CONDITION:
            continue
        values = [_value(name, said) for said in query.getlist(name)]
        if name == "filters":
            found += values
        elif DEEP.fullmatch(name):
            continue
        elif name in FIELDS or name.startswith("metadata."):
            found.append({name: values[0] if len(values) == 1 else values})
        else:
            raise InvalidInput(f"{name} is no filter. Use {', '.join((*ENTITY_IDS, 'filters'))}.")
    return found + deep_metadata(query)


def deep_metadata(query: QueryParams) -> list[dict[str, Any]]:
    """The conditions written as `metadata[key]=value`.

    A query string has no types: a value that reads as a number or a boolean matches both that value
    and its text.
    """
    return [
        _either(match[1], text)
        for name, text in query.multi_items()
        if (match := DEEP.fullmatch(name))
    ]


def _either(key: str, text: str) -> dict[str, Any]:
    as_text = {"metadata": {key: text}}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return as_text
    return (
        {"OR": [as_text, {"metadata": {key: value}}]} if isinstance(value, int | float) else as_text
    )


def _value(name: str, said: str) -> Any:
    if not said.strip():
        raise InvalidInput(f"{name} is blank; leave it out, or say whose memories.")
    if name in ("filters", "metadata") or said.lstrip().startswith(OPENS):
        return literal(name, said)
    return said
