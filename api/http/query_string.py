"""Query strings of clients: objects are written as JSON, or as Python prints them."""

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

# Names that are no condition; old clients and the CLI add some of them to every request.
NO_CONDITION = {"org_id", "project_id", "source", "delete_linked"}
# Different names of a query string.
MOST_NAMES = 100
FIELDS = {*KIND, *ALIASES}
OPENS = ("{", "[", "(")


def literal(name: str, text: str) -> Any:
    """Parse a value written as JSON or as a Python literal. Errors: InvalidInput."""
    try:
        return read(text.encode())
    except orjson.JSONDecodeError:
        pass
    try:
        # Only values that JSON has: no bytes, sets or Infinity.
        return read(json.dumps(ast.literal_eval(text), allow_nan=False).encode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise InvalidInput(f"{name} is neither JSON nor a Python literal; send JSON.") from None


def conditions(query: QueryParams) -> list[dict[str, Any]]:
    """The conditions in a query string as filters, all of which must match.

    Errors: InvalidInput for an unknown name, because ignoring it would widen a delete.
    """
    parts = []
    for name, texts in _by_name(query).items():
        if name in NO_CONDITION or name == "dry_run":
            continue
        values = [_value(name, text) for text in texts]
        if name == "filters":
            parts += values
        elif name in FIELDS or name.startswith("metadata."):
            parts.append({name: values[0] if len(values) == 1 else values})
        elif not DEEP.fullmatch(name):
            raise InvalidInput(
                f"{name} is not a filter. Use {', '.join((*ENTITY_IDS, 'filters'))}."
            )
    return parts + deep_metadata(query)


def _by_name(query: QueryParams) -> dict[str, list[str]]:
    """The values of each name. Errors: InvalidInput for more than MOST_NAMES names."""
    values: dict[str, list[str]] = {}
    for name, text in query.multi_items():
        values.setdefault(name, []).append(text)
    if len(values) > MOST_NAMES:
        raise InvalidInput(
            f"The query string has {len(values)} names, the limit is {MOST_NAMES}; send `filters`."
        )
    return values


def deep_metadata(query: QueryParams) -> list[dict[str, Any]]:
    """The conditions written as `metadata[key]=value`.

    A query string has no types, so a number or a boolean matches both the value and its text.
    """
    return [
        _either(match[1], text)
        for name, text in query.multi_items()
        if (match := DEEP.fullmatch(name))
    ]


def _either(key: str, text: str) -> dict[str, Any]:
    as_text = {"metadata": {key: text}}
    try:
        value = read(text.encode())
    except (orjson.JSONDecodeError, InvalidInput):  # no number, or one that would be rounded
        return as_text
    return (
        {"OR": [as_text, {"metadata": {key: value}}]} if isinstance(value, int | float) else as_text
    )


def _value(name: str, text: str) -> Any:
    if not text.strip():
        raise InvalidInput(f"{name} is blank; give a value or leave it out.")
    if name in ("filters", "metadata") or text.lstrip().startswith(OPENS):
        return literal(name, text)
    return text
