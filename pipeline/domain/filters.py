"""The filter language of reads: JSON in, a tree out. What cannot be understood is refused.

    {"user_id": "maya"}                                      siblings are ANDed
    {"AND": [{"user_id": "maya"}, {"NOT": {"run_id": "*"}}]}   AND, OR, NOT nest
    {"created_at": {"gte": "2026-01-01"}, "metadata.trip": "lisbon"}

Metadata: numbers compare as numbers, strings as strings by code points (so ISO dates sort), and a
missing key or another type is never greater or less. `ne` and `nin` hold for a missing key; a null
equals a stored null only; {"ne": "*"} is a missing key or a null.

Ignoring a part that is not understood would widen a read, and under NOT a delete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import FailureCode

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
    "metadata": (
        "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains",
    ),
    "text": ("eq", "contains", "icontains"),
    "keywords": ("contains", "icontains"),
    "categories": ("eq", "ne", "in", "contains"),
    "attributed_to": ("eq", "ne", "in"),
    "memory_ids": ("in",),
}  # fmt: skip
ORDERED, LISTED = ("gt", "gte", "lt", "lte"), ("in", "nin")
PATTERNS = ("contains", "icontains")
# Operator names of other query languages, without `$`, `_` and blanks. An object with one of them
# as a key is a condition that is not supported, not a value to compare with.
FOREIGN_OPERATORS = {
    "all", "and", "any", "between", "contain", "containsall", "containsany", "elemmatch", "empty",
    "endswith", "equal", "equals", "exists", "ge", "greaterthan", "ieq", "ilike", "is", "isempty",
    "isnot", "isnull", "le", "lessthan", "like", "match", "matches", "mod", "neq", "nor", "not",
    "notcontains", "notequal", "notequals", "noteq", "notexists", "notin", "notlike", "notnull",
    "null", "or", "overlaps", "prefix", "range", "regex", "regexp", "size", "startswith", "suffix",
    "type", "wildcard",
}  # fmt: skip
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
# What one filter may hold: each condition is compiled, and each pattern is compared with every
# text of the scope.
DEEPEST = 16
MOST_CONDITIONS, MOST_VALUES = 100, 1_000
LONGEST_PATTERN, LONGEST_KEY = 256, 256
# Owners that are looked for one by one in the index; more are looked for in all of it.
MOST_COVERS = 16


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
    return _Parser().group(value, depth=0)


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


def of_pins_only(tree: Filter) -> bool:
    """Whether the pinned ids say all that the tree does."""
    match tree:
        case Test():
            return bool(pinned(tree))
        case AllOf(of):
            return all(of_pins_only(part) for part in of) and not _contradicts(of)
        case AnyOf((one,)):
            return of_pins_only(one)
        case _:
            return False


def _contradicts(parts: Sequence[Filter]) -> bool:
    """Whether an id is pinned to two values: `pinned` keeps one of them."""
    pins = {pin for part in parts for pin in pinned(part).items()}
    return len(pins) != len({field for field, _ in pins})


def covers(tree: Filter) -> list[dict[str, str]]:
    """Sets of pinned ids, one of which every match has: one for each branch of an OR.

    An empty set, alone, where some matches need not have any of them.
    """
    match tree:
        case AnyOf(of) if len(of) > 1:
            sets = [found for part in of for found in covers(part)]
            distinct = list({tuple(sorted(found.items())): found for found in sets}.values())
            return distinct if len(distinct) <= MOST_COVERS and all(distinct) else [{}]
        case Test(field, "in", list(values)) if field in ENTITY_IDS:
            ids = list(dict.fromkeys(values))
            usable = 0 < len(ids) <= MOST_COVERS and None not in ids and ANY not in ids
            return [{field: value} for value in ids] if usable else [{}]
        case AllOf(of):
            sets = next((sets for part in of if len(sets := covers(part)) > 1), [pinned(tree)])
            return [found | pinned(tree) for found in sets]
        case _:
            return [pinned(tree)]


def size(tree: Filter) -> int:
    """Number of conditions."""
    match tree:
        case AllOf(of) | AnyOf(of):
            return sum(size(part) for part in of)
        case Not(of):
            return size(of)
        case Test():
            return 1


def of_ids_only(tree: Filter) -> bool:
    """It asks for nothing but entity ids, so it holds for all that a scope has, or for nothing."""
    match tree:
        case Test(field):
            return field in ENTITY_IDS
        case AllOf(of) | AnyOf(of):
            return all(of_ids_only(part) for part in of)
        case Not(of):
            return of_ids_only(of)


class _Parser:
    """Parses one filter and counts what it holds."""

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0

    def group(self, value: object, *, depth: int) -> Filter:
        if depth > DEEPEST:
            raise InvalidInput(f"filters nest deeper than {DEEPEST} levels.")
        if not isinstance(value, Mapping):
            raise InvalidInput(f"A filter must be an object, not {type(value).__name__}.")
        if not value:
            raise InvalidInput(f"An empty filter matches everything; {SCOPE_NEEDED}.")
        parts = tuple(self._entry(str(key), item, depth=depth) for key, item in value.items())
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def _entry(self, key: str, value: object, *, depth: int) -> Filter:
        match key:
            case "AND":
                return AllOf(self._branches(key, value, depth=depth))
            case "OR":
                return AnyOf(self._branches(key, value, depth=depth))
            case "NOT":
                branches = value if isinstance(value, list) else [value]
                return Not(AnyOf(self._branches(key, branches, depth=depth)))
            case _:
                return self._field(ALIASES.get(key, key), value)

    def _branches(self, key: str, value: object, *, depth: int) -> tuple[Filter, ...]:
        if not isinstance(value, list) or not value:
            raise InvalidInput(f"{key} takes a list of at least one filter.")
        return tuple(self.group(branch, depth=depth + 1) for branch in value)

    def _field(self, field: str, value: object) -> Filter:
        if field.startswith("metadata.") and len(field) > len("metadata."):
            return self._metadata(field.removeprefix("metadata."), value)
        if field not in KIND:
            allowed = ", ".join(["AND", "OR", "NOT", *KIND])
            raise InvalidInput(f"Unknown filter key {field[:50]!r}. Allowed: {allowed}.")
        if field == "metadata":
            if not isinstance(value, Mapping) or not value:
                raise InvalidInput("metadata takes an object of keys and conditions.")
            if operators := [key for key in value if key in OPERATORS["metadata"]]:
                raise InvalidInput(
                    f"metadata: {operators[0]!r} needs a key. Write "
                    f'{{"metadata": {{"KEY": {{"{operators[0]}": …}}}}}}; '
                    f"a key of that name is metadata.{operators[0]}."
                )
            return AllOf(tuple(self._metadata(str(key), held) for key, held in value.items()))
        if isinstance(value, Mapping):
            return self._tests(field, value)
        if field == "keywords":
            return self._keywords(value)
        return self._tests(field, {"in" if isinstance(value, list) else "eq": value})

    def _metadata(self, path: str, value: object) -> Filter:
        if len(path) > LONGEST_KEY:
            raise InvalidInput(f"A metadata key has at most {LONGEST_KEY} characters.")
        if isinstance(value, list):
            raise InvalidInput(
                f'metadata {path!r}: a list can mean two things. Write {{"in": [...]}} for any of '
                'its values, or {"eq": [...]} for the list itself.'
            )
        if isinstance(value, Mapping) and any(map(_is_operator, value)):
            return self._tests("metadata", value, path)
        return self._tests("metadata", {"eq": value}, path)

    def _keywords(self, value: object) -> Filter:
        """A bare keyword is looked for in any case; of several, all must be there."""
        words = value if isinstance(value, list) else [value]
        tests = [self._tests("keywords", {"icontains": word}) for word in words]
        if not tests:
            raise InvalidInput("keywords needs a value.")
        return tests[0] if len(tests) == 1 else AllOf(tuple(tests))

    def _tests(self, field: str, asked: Mapping[Any, object], path: str | None = None) -> Filter:
        """The conditions of one field, all of which must hold."""
        allowed = OPERATORS[KIND[field]]
        for operator in asked:
            if operator not in allowed:
                raise InvalidInput(_unsupported(field, str(operator), allowed))
        tests = tuple(self._test(field, op, value, path) for op, value in asked.items())
        if not tests:
            raise InvalidInput(f"{field} needs a value.")
        return tests[0] if len(tests) == 1 else AllOf(tests)

    def _test(self, field: str, operator: str, value: object, path: str | None) -> Test:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise InvalidInput(f"filters hold more than {MOST_CONDITIONS} conditions.")
        self._values += len(value) if isinstance(value, list) else 1
        if self._values > MOST_VALUES:
            raise InvalidInput(f"filters hold more than {MOST_VALUES} values.")
        if operator not in LISTED:
            return Test(field, operator, _operand(field, operator, value), path)
        if not isinstance(value, list):
            raise InvalidInput(f"{field}: {operator!r} takes a list.")
        return Test(field, operator, [_operand(field, "eq", item) for item in value], path)


def _is_operator(key: object) -> bool:
    """Whether a key of an object is an operator, of this language or of another."""
    name = re.sub(r"[\W_]", "", str(key)).lower()
    known = {*OPERATORS["metadata"], *FOREIGN_OPERATORS}
    return not name or str(key).startswith("$") or name in known


def _unsupported(field: str, operator: str, allowed: Iterable[str]) -> str:
    hint = ' To compare with an object, write {"eq": {...}}.' if field == "metadata" else ""
    return f"{field} does not know {operator[:50]!r}. Allowed: {', '.join(allowed)}.{hint}"


def _operand(field: str, operator: str, value: object) -> object:
    if operator in PATTERNS:
        return _pattern(field, value)
    if value == ANY and operator in ("eq", "ne"):
        return value
    match KIND[field]:
        case "time":
            if value is None and operator not in ("eq", "ne"):
                raise InvalidInput(f"{field}: {operator!r} needs a time.")
            return None if value is None else moment(field, value)
        case "memory_ids":
            return _uuid(value)
        case "metadata":
            return _ordered(operator, value) if operator in ORDERED else _json(value)
        case _:
            return None if value is None and operator in ("eq", "ne") else _text(field, value)


def _pattern(field: str, value: object) -> str:
    """Every text of a scope is searched for it, so its length is bounded."""
    if field == "metadata" and isinstance(value, float):
        value = str(value)
    pattern = _text(field, value)
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidInput(f"{field}: a pattern has at most {LONGEST_PATTERN} characters.")
    return pattern


def _ordered(operator: str, value: object) -> object:
    """A number is compared with numbers, a string with strings, by code points."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f"metadata: {operator!r} takes a number or a string.")
    return _json(value)


def _json(value: object) -> object:
    """A value of metadata. A query string can hold what JSON cannot: NaN, sets, bytes."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("metadata takes values of JSON.") from None
    return value


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


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions on events, all of which must hold; an empty value is no condition.

    `created`: bounds as `period` returns them. `graph_failed`: only events whose graph can be
    replayed.
    """

    scope_ids: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[str] = ()
    statuses: Sequence[str] = ()
    created: Mapping[str, datetime] = field(default_factory=dict)
    code: FailureCode | None = None
    graph_failed: bool = False


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
