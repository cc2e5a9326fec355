"""The filter language of reads: JSON in, a tree out. What cannot be understood is refused.

    {"user_id": "maya"}                                      siblings are ANDed
    {"AND": [{"user_id": "maya"}, {"NOT": {"run_id": "*"}}]}   AND, OR, NOT nest
    {"created_at": {"gte": "2026-01-01"}, "metadata.trip": "lisbon"}

Ignoring a part one does not know would widen a read, and a delete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pipeline.errors import InvalidInput

ENTITY_IDS = ("user_id", "agent_id", "app_id", "run_id")
TIMES = ("created_at", "updated_at", "timestamp", "expiration_date")
ALIASES = {
    "userId": "user_id",
    "agentId": "agent_id",
    "appId": "app_id",
    "runId": "run_id",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "expirationDate": "expiration_date",
    "memoryIds": "memory_ids",
    "session_id": "run_id",
    "keywords_search": "keywords",
}
# What each kind of field may be asked. A bare value means eq; a bare list means in.
OPERATORS = {
    "entity": ("eq", "ne", "in"),
    "time": ("eq", "ne", "gt", "gte", "lt", "lte", "in"),
    "metadata": ("eq", "ne", "contains"),
    "text": ("eq", "contains", "icontains"),
    "keywords": ("contains", "icontains"),
    "categories": ("eq", "ne", "in", "contains"),
    "attributed_to": ("eq", "ne", "in"),
    "memory_ids": ("in",),
}
KIND = (
    dict.fromkeys(ENTITY_IDS, "entity")
    | dict.fromkeys(TIMES, "time")
    | {
        name: name
        for name in ("metadata", "text", "keywords", "categories", "attributed_to", "memory_ids")
    }
)
# Matches whatever is not null.
ANY = "*"
SCOPE_NEEDED = "must name at least one of user_id, agent_id, app_id, run_id outside NOT"
DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Test:
    """One condition. `path` is the metadata key where `field` is metadata."""

    field: str
    operator: str
    value: Any
    path: str | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    of: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    of: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    of: Filter


Filter = Test | AllOf | AnyOf | Not


def parse(value: object) -> Filter:
    """The tree of a filter. Errors: InvalidInput that says which part, and what is allowed."""
    return _group(value, depth=0)


def require_scope(tree: Filter) -> Filter:
    """Refuse a filter that names no user, agent, app or run positively: it would read everybody."""
    if not _scoped(tree):
        raise InvalidInput(f"filters {SCOPE_NEEDED}.")
    return tree


def pinned(tree: Filter) -> dict[str, str]:
    """Entity ids that every match must equal: they choose the index's collection."""
    match tree:
        case Test(field, "eq", str(value)) if field in ENTITY_IDS and value != ANY:
            return {field: value}
        case AllOf(of):
            return {key: value for part in of for key, value in pinned(part).items()}
        case AnyOf((one,)):
            return pinned(one)
        case _:
            return {}


def of_ids_only(tree: Filter) -> bool:
    """It asks for nothing but entity ids, so it holds for all that a scope has, or for nothing."""
    match tree:
        case Test(field):
            return field in ENTITY_IDS
        case AllOf(of) | AnyOf(of):
            return all(of_ids_only(part) for part in of)
        case Not(of):
            return of_ids_only(of)


def _group(value: object, *, depth: int) -> Filter:
    if depth > DEEPEST:
        raise InvalidInput(f"filters nest deeper than {DEEPEST} levels.")
    if not isinstance(value, Mapping):
        raise InvalidInput(f"A filter must be an object, not {type(value).__name__}.")
    if not value:
        raise InvalidInput(f"An empty filter matches everything; {SCOPE_NEEDED}.")
    parts = tuple(_entry(str(key), item, depth=depth) for key, item in value.items())
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _entry(key: str, value: object, *, depth: int) -> Filter:
    match key:
        case "AND":
            return AllOf(_branches(key, value, depth=depth))
        case "OR":
            return AnyOf(_branches(key, value, depth=depth))
        case "NOT":
            branches = value if isinstance(value, list) else [value]
            return Not(AnyOf(_branches(key, branches, depth=depth)))
        case _:
            return _field(ALIASES.get(key, key), value)


def _branches(key: str, value: object, *, depth: int) -> tuple[Filter, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidInput(f"{key} takes a list of at least one filter.")
    return tuple(_group(branch, depth=depth + 1) for branch in value)


def _field(field: str, value: object) -> Filter:
    if field.startswith("metadata.") and len(field) > len("metadata."):
        return _conditions("metadata", value, path=field.removeprefix("metadata."))
    if field not in KIND:
        allowed = ", ".join(["AND", "OR", "NOT", *KIND])
        raise InvalidInput(f"Unknown filter key {field!r}. Allowed: {allowed}.")
    if field == "metadata":
        if not isinstance(value, Mapping) or not value:
            raise InvalidInput("metadata takes an object of keys and conditions.")
        return AllOf(tuple(_conditions("metadata", v, path=str(k)) for k, v in value.items()))
    return _conditions(field, value)


def _conditions(field: str, value: object, *, path: str | None = None) -> Filter:
    asked = (
        value if isinstance(value, Mapping) else {"in" if isinstance(value, list) else "eq": value}
    )
    allowed = OPERATORS[KIND[field]]
    if field == "metadata" and not set(asked) & set(allowed):
        asked = {"eq": value}  # an object to compare with, not operators
    if field == "keywords" and not isinstance(value, Mapping):
        return _keywords(value)
    for operator in asked:
        if operator not in allowed:
            raise InvalidInput(
                f"{field} does not know {operator!r}. Allowed: {', '.join(allowed)}."
            )
    tests = tuple(Test(field, op, _operand(field, op, v), path) for op, v in asked.items())
    if not tests:
        raise InvalidInput(f"{field} needs a value.")
    return tests[0] if len(tests) == 1 else AllOf(tests)


def _keywords(value: object) -> Filter:
    """A bare keyword is looked for in any case; of several, all must be there."""
    words = value if isinstance(value, list) else [value]
    if not words:
        raise InvalidInput("keywords needs a value.")
    tests = tuple(Test("keywords", "icontains", _text("keywords", word)) for word in words)
    return tests[0] if len(tests) == 1 else AllOf(tests)


def _operand(field: str, operator: str, value: object) -> object:
    if value == ANY and operator in ("eq", "ne"):
        return value
    if operator == "in":
        if not isinstance(value, list):
            raise InvalidInput(f"{field}: 'in' takes a list.")
        return [_operand(field, "eq", item) for item in value]
    match KIND[field]:
        case "time":
            if value is None and operator not in ("eq", "ne"):
                raise InvalidInput(f"{field}: {operator!r} needs a time.")
            return None if value is None else moment(field, value)
        case "memory_ids":
            return _uuid(value)
        case "metadata":
            return value
        case _:
            return None if value is None and operator in ("eq", "ne") else _text(field, value)


def _text(field: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{field} takes a string.")
    return str(value)


def moment(field: str, value: object) -> datetime:
    """A time from ISO 8601 (a bare date is its midnight, no zone is UTC) or Unix seconds."""
    try:
        if isinstance(value, datetime):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(str(value))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"{field}: {value!r} is no time. Use 2026-03-01, 2026-03-01T10:00:00Z or Unix seconds."
        ) from None


def period(start: object, end: object) -> dict[str, datetime]:
    """The condition of a time between two; an end that is a bare date includes its day."""
    found = {}
    if start:
        found["gte"] = moment("start_date", start)
    if end:
        found["lte"] = moment("end_date", end)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", str(end)):
            found["lte"] += timedelta(days=1, microseconds=-1)
    return found


def _uuid(value: object) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidInput(f"memory_ids: {value!r} is not a UUID.") from None


def _scoped(tree: Filter) -> bool:
    match tree:
        case Test(field, operator, value):
            return field in ENTITY_IDS and operator in ("eq", "in") and value is not None
        case AllOf(of):
            return any(_scoped(part) for part in of)
        case AnyOf(of):
            return bool(of) and all(_scoped(part) for part in of)
        case Not():
            return False
