"""Parser of the filter language: JSON in, a tree out. Unknown parts are errors.

    {"user_id": "maya"}                                      siblings are ANDed
    {"AND": [{"user_id": "maya"}, {"NOT": {"run_id": "*"}}]}   AND, OR, NOT nest
    {"created_at": {"gte": "2026-01-01"}, "metadata.trip": "lisbon"}

Metadata: numbers compare as numbers, strings by code points (so ISO dates sort). A missing key or
a value of another type is neither greater nor less. `ne` and `nin` hold for a missing key. A null
equals only a stored null. {"ne": "*"} matches a missing key or a null.

A parser that ignored an unknown part would read more than was meant, and under NOT delete more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import FailureCode
from pipeline.domain.graph.values import GraphStatus

ENTITY_IDS = ("user_id", "agent_id", "app_id", "run_id")
TIMES = ("created_at", "updated_at", "timestamp", "said_at", "valid_from", "expiration_date")
STRUCTURE = ("kind", "memory_type", "subject", "attribute", "slot", "speaker")
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
# Operators allowed for each kind of field. A bare value means eq; a bare list means in.
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
    "structure": ("eq", "ne", "in"),
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
    | dict.fromkeys(STRUCTURE, "structure")
    | {
        name: name
        for name in ("metadata", "text", "keywords", "categories", "attributed_to", "memory_ids")
    }
)
# Matches any value that is not null, and the refusal of it as the id of one owner.
ANY = "*"
ANY_IS_NO_ID = f"{ANY!r} stands for any id in filters, so it cannot be an id"
SCOPE_NEEDED = "must name at least one of user_id, agent_id, app_id, run_id outside NOT"
# Maximum size of a filter: each condition becomes SQL, and each pattern is compared with every
# text of the scope.
DEEPEST = 16
MOST_CONDITIONS, MOST_VALUES = 100, 1_000
LONGEST_PATTERN, LONGEST_KEY = 256, 256
# Maximum number of owners searched one by one in the vector index; above it, all of it is searched.
MOST_COVERS = 16


@dataclass(frozen=True, slots=True)
class Test:
    """One condition. `path` is the metadata key where `field` is metadata.

    In a shape, `value` and `path` are parameters.
    """

    field: str
    operator: str
    value: Any
    path: Any = None


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts must match (AND)."""

    of: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part must match (OR)."""

    of: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part must not match."""

    of: Filter


Filter = Test | AllOf | AnyOf | Not


def parse(value: object) -> Filter:
    """Parse a filter. Errors: InvalidInput that names the part and the allowed values."""
    return _Parser().group(value, depth=0)


def require_id(value: str) -> str:
    """The id of one user, agent, app or run. Errors: InvalidInput for the one that means any."""
    if value == ANY:
        raise InvalidInput(f"{ANY_IS_NO_ID}.")
    return value


def require_scope(tree: Filter) -> Filter:
    """Refuse a filter without a user, agent, app or run outside NOT: it would read all owners."""
    if not _scoped(tree):
        raise InvalidInput(f"filters {SCOPE_NEEDED}.")
    return tree


def pinned(tree: Filter) -> dict[str, str]:
    """Entity ids that every match must have. They select the index's collection."""
    match tree:
        case Test(field, "eq", str(value)) if field in ENTITY_IDS and value != ANY:
            return {field: value}
        case AllOf(of):
            return {key: value for part in of for key, value in pinned(part).items()}
        case AnyOf((part,)):
            return pinned(part)
        case _:
            return {}


def of_pins_only(tree: Filter) -> bool:
    """True if the pinned ids are equivalent to the whole tree."""
    match tree:
        case Test():
            return bool(pinned(tree))
        case AllOf(of):
            # `pinned` keeps one of two values of the same id.
            pins = {pin for part in of for pin in pinned(part).items()}
            return all(map(of_pins_only, of)) and len(pins) == len({field for field, _ in pins})
        case AnyOf((part,)):
            return of_pins_only(part)
        case _:
            return False


def covers(tree: Filter) -> list[dict[str, str]]:
    """Sets of pinned ids, one per branch of an OR; every match has the ids of at least one set.

    A single empty set if a match can exist without any of them.
    """
    match tree:
        case AnyOf(of) if len(of) > 1:
            sets = [ids for part in of for ids in covers(part)]
            distinct = list({tuple(sorted(ids.items())): ids for ids in sets}.values())
            return distinct if len(distinct) <= MOST_COVERS and all(distinct) else [{}]
        case Test(field, "in", list(values)) if field in ENTITY_IDS:
            distinct_ids = list(dict.fromkeys(values))
            usable = 0 < len(distinct_ids) <= MOST_COVERS and not {None, ANY} & set(distinct_ids)
            return [{field: value} for value in distinct_ids] if usable else [{}]
        case AllOf(of):
            sets = next((sets for part in of if len(sets := covers(part)) > 1), [pinned(tree)])
            return [ids | pinned(tree) for ids in sets]
        case _:
            return [pinned(tree)]


def named_runs(tree: Filter) -> Iterator[Test]:
    """The tests of a tree that name runs, outside of NOT."""
    match tree:
        case Test("run_id", "eq" | "in", value) if value is not None and value != ANY:
            yield tree
        case AllOf(of) | AnyOf(of):
            for part in of:
                yield from named_runs(part)
        case _:
            return


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
    """True if all conditions are on entity ids: then all memories of a scope match, or none."""
    match tree:
        case Test(field):
            return field in ENTITY_IDS
        case AllOf(of) | AnyOf(of):
            return all(of_ids_only(part) for part in of)
        case Not(of):
            return of_ids_only(of)


class _Parser:
    """Parser of one filter; counts its conditions and values."""

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0

    def group(self, value: object, *, depth: int) -> Filter:
        if depth > DEEPEST:
            raise InvalidInput(f"filters nest deeper than {DEEPEST} levels.")
        if not isinstance(value, Mapping):
            raise InvalidInput(f"A filter must be an object, not {type(value).__name__}.")
        if not value:
            raise InvalidInput(f"An empty filter matches everything: filters {SCOPE_NEEDED}.")
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
        """Parse a condition on a field. Errors: InvalidInput for an unknown field."""
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
            return AllOf(tuple(self._metadata(str(key), item) for key, item in value.items()))
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
        """Match bare keywords without regard to case; all of a list must match."""
        words = value if isinstance(value, list) else [value]
        tests = [self._tests("keywords", {"icontains": word}) for word in words]
        if not tests:
            raise InvalidInput("keywords needs a value.")
        return tests[0] if len(tests) == 1 else AllOf(tuple(tests))

    def _tests(
        self, field: str, conditions: Mapping[Any, object], path: str | None = None
    ) -> Filter:
        """The conditions on one field, combined with AND."""
        allowed = OPERATORS[KIND[field]]
        for operator in conditions:
            if operator not in allowed:
                raise InvalidInput(_unsupported(field, str(operator), allowed))
        tests = tuple(self._test(field, op, value, path) for op, value in conditions.items())
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
    """True if a key is an operator of this query language or of another one."""
    name = re.sub(r"[\W_]", "", str(key)).lower()
    known = {*OPERATORS["metadata"], *FOREIGN_OPERATORS}
    return not name or str(key).startswith("$") or name in known


def _unsupported(field: str, operator: str, allowed: Iterable[str]) -> str:
    hint = ' To compare with an object, write {"eq": {...}}.' if field == "metadata" else ""
    return f"{field} does not know {operator[:50]!r}. Allowed: {', '.join(allowed)}.{hint}"


def _operand(field: str, operator: str, value: object) -> object:
    """Convert the value of a condition to the type of its field. Errors: InvalidInput."""
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
    """A pattern of bounded length, because it is compared with every text of a scope."""
    if field == "metadata" and isinstance(value, float):
        value = str(value)
    pattern = _text(field, value)
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidInput(f"{field}: a pattern has at most {LONGEST_PATTERN} characters.")
    return pattern


def _ordered(operator: str, value: object) -> object:
    """Operand of gt, gte, lt or lte: a number or a string."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f"metadata: {operator!r} takes a number or a string.")
    return _json(value)


def _json(value: object) -> object:
    """A metadata value that JSON can represent; a query string can hold NaN, for example."""
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
    """Parse an ISO 8601 time or Unix seconds to UTC. A bare date is its midnight.

    Errors: InvalidInput, with the accepted forms.
    """
    return local_moment(field, value).astimezone(UTC)


def local_moment(field: str, value: object) -> datetime:
    """Parse a time as `moment` does, and keep its offset from UTC. The default zone is UTC."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, UTC)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        time.astimezone(UTC)  # an OverflowError if that is outside of the years 1 to 9999
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"{field}: {value!r} is no time. Use 2026-03-01, 2026-03-01T10:00:00Z or Unix seconds."
        ) from None
    return time


def period(start: object, end: object) -> dict[str, datetime]:
    """Bounds of a period, as operators and times. An end that is a bare date includes that day."""
    bounds = {}
    if start:
        bounds["gte"] = moment("start_date", start)
    if end:
        bounds["lte"] = moment("end_date", end)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", str(end)):
            bounds["lte"] += timedelta(days=1, microseconds=-1)
    return bounds


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions on events, combined with AND; an empty value is no condition.

    `created`: bounds from `period`. `graph_status`: only events with such a graph, not undone.
    """

    scope_ids: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[str] = ()
    statuses: Sequence[str] = ()
    created: Mapping[str, datetime] = field(default_factory=dict)
    code: FailureCode | None = None
    graph_status: GraphStatus | None = None


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
