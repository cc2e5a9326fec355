"""Filter trees as SQL conditions on the memories table, or on turns with the same column names.

The SQL of a condition depends only on the filter's shape; its values are parameters. So a caller
can compile one statement for all filters of one shape.

Null is never equal to a value, so `ne` matches rows with null.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    DateTime,
    FromClause,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    collate,
    exists,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import TypeEngine

from pipeline.domain.filters import (
    ANY,
    LISTED,
    ORDERED,
    PATTERNS,
    TIMES,
    AllOf,
    AnyOf,
    EventFilter,
    Filter,
    Not,
    Test,
    named_runs,
)
from pipeline.domain.graph.values import GraphStatus
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import events, lanes, memories, messages

# Parameter of every condition of `matching`: the project.
IN_PROJECT: BindParameter[UUID] = bindparam("in_project", type_=Uuid)
OPEN = frozenset({"PENDING", "RUNNING"})
NAMES = {"timestamp": "said_at", "keywords": "text", "memory_ids": "id"}


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a filter, bound to the statement as a literal."""

    value: Any

    def of(self, kind: TypeEngine[Any]) -> ColumnElement[Any]:
        """The value as a literal of this SQL type."""
        return literal(self.value, kind)


@dataclass(frozen=True, slots=True)
class Named:
    """The name of a parameter, in a shape that stands for all filters like it."""

    name: str

    def of(self, kind: TypeEngine[Any]) -> ColumnElement[Any]:
        """The parameter with this SQL type."""
        return bindparam(self.name, type_=kind)


@dataclass(frozen=True, slots=True)
class Key:
    """A metadata key, as a parameter: filters with other keys have the same shape.

    `dotted`: it may be a path into nested objects.
    """

    name: Given | Named
    dotted: bool


def shape(tree: Filter) -> tuple[Filter, dict[str, Any]]:
    """Replace the values of a tree by parameter names. Returns the shape and the values by name."""
    values: dict[str, Any] = {}

    def name(value: Any) -> Named:
        values[named := f"asked_{len(values)}"] = value
        return Named(named)

    return _with(name, tree), values


def matches(
    project_id: ProjectId, tree: Filter | None, *, private: bool = False
) -> ColumnElement[bool]:
    """Condition for the memories of a project that match the tree; None matches all.

    It always includes the project, so no filter can reach another tenant. `private`: include those
    of temporary runs that the tree does not name.
    """
    mine = memories.c.project_id == project_id
    named = _with(Given, tree) if tree is not None else AllOf(())
    shown = true() if private else shown_of(memories, named)
    return and_(mine, shown, _condition(named, memories))


def matching(shaped: Filter, table: FromClause) -> ColumnElement[bool]:
    """Like `matches`, for a shape: the project is the parameter `in_project`."""
    mine = table.c.project_id == IN_PROJECT
    return and_(mine, shown_of(table, shaped), _condition(shaped, table))


def one_of(column: ColumnElement[Any], words: Iterable[str]) -> ColumnElement[bool]:
    """Match rows whose column has one of these constants, which are written into the SQL text.

    So the planner can use a partial index whose condition names one of them. Errors: ValueError for
    a word with other characters than letters, digits and underscores.
    """
    constants = list(words)
    if strange := [word for word in constants if not re.fullmatch(r"\w*", word, re.ASCII)]:
        raise ValueError(f"No constants of a statement: {strange}")
    return column.in_([literal_column(f"'{word}'") for word in constants])


def among(column: ColumnElement[Any], ids: Iterable[UUID]) -> ColumnElement[bool]:
    """Match rows with one of these ids, sent as one array.

    The statement is the same for any number of ids, and the limit of 32,767 parameters does not
    apply.
    """
    return column == any_(literal(list(ids), ARRAY(Uuid)))


def of_event(event: FromClause = events) -> ColumnElement[bool]:
    """Match the messages of an event."""
    return and_(messages.c.lane_id == event.c.lane_id, messages.c.seq == event.c.seq)


def message_at(ordinal: ColumnElement[Any], event: FromClause = events) -> ColumnElement[bool]:
    """Match the message of an event with this number."""
    return and_(of_event(event), messages.c.ordinal == ordinal)


def looked_up(
    column: ColumnElement[Any], ids: Select[tuple[UUID]] | CompoundSelect[tuple[UUID]]
) -> ColumnElement[bool]:
    """Match rows with one of the selected ids, by an index look-up for each.

    The generic plan of `column IN (SELECT …)` may read the whole table: it does not know the number
    of ids.
    """
    return column == any_(func.array(ids.scalar_subquery()))


@dataclass(frozen=True, slots=True)
class EventShape:
    """The part of an `EventFilter` that a statement depends on; its values are parameters.

    `scope_ids`: names of the entity ids. `bounds`: operators of the times. `by_code`: it has a
    code.
    """

    scope_ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    by_code: bool = False
    graph_status: GraphStatus | None = None

    @property
    def owned(self) -> ColumnElement[bool]:
        """Condition on `lanes`: they have the entity ids of the filter."""
        ids = (lanes.c[name] == bindparam(f"asked_{name}", type_=Text) for name in self.scope_ids)
        return and_(true(), *ids)


def event_shape(wanted: EventFilter) -> tuple[EventShape, dict[str, Any]]:
    """Return the shape of a filter of events, and its values by the names of the parameters.

    Words that are repeated or in another order make no other shape: each is compiled and kept.
    """
    shaped = EventShape(
        tuple(wanted.scope_ids),
        tuple(sorted(set(wanted.kinds))),
        tuple(sorted(set(wanted.statuses))),
        tuple(wanted.created),
        by_code=wanted.code is not None,
        graph_status=wanted.graph_status,
    )
    values = {f"asked_{name}": value for name, value in wanted.scope_ids.items()}
    bounds = {f"asked_{name}": moment for name, moment in wanted.created.items()}
    return shaped, {**values, **bounds, "asked_code": wanted.code}


def events_matching(wanted: EventShape, *, private: bool = False) -> ColumnElement[bool]:
    """Condition on `events JOIN lanes` for a filter of events of the project `in_project`.

    `private`: include those of temporary runs that the filter does not name.
    """
    return and_(
        events.c.project_id == IN_PROJECT,
        true() if private else shown(lanes, wanted.scope_ids),
        wanted.owned,
        event_conditions(wanted),
    )


def event_conditions(wanted: EventShape, table: FromClause = events) -> ColumnElement[bool]:
    """Condition on events alone for a filter, without its owner. `table`: has their columns."""
    graph_status = one_of(table.c.graph_status, [wanted.graph_status or ""])
    graph = and_(graph_status, table.c.undone_at.is_(None))
    return and_(
        true(),
        *([one_of(table.c.event_type, wanted.kinds)] if wanted.kinds else []),
        *([one_of(table.c.status, wanted.statuses)] if wanted.statuses else []),
        # Implied by these statuses: the condition of the index of open events.
        *(
            [table.c.completed_at.is_(None)]
            if wanted.statuses and OPEN.issuperset(wanted.statuses)
            else []
        ),
        created_within(wanted, table),
        *([has_code(table)] if wanted.by_code else []),
        *([graph] if wanted.graph_status else []),
    )


def has_code(table: FromClause = events) -> ColumnElement[bool]:
    """Condition on events: they ended with the code of the filter."""
    matches: ColumnElement[bool] = table.c.failure_code == bindparam("asked_code", type_=Text)
    return matches


def created_within(wanted: EventShape, table: FromClause = events) -> ColumnElement[bool]:
    """Condition on the times of events for a filter."""
    compare = {"gte": operator.ge, "lte": operator.le}
    times = (
        compare[name](table.c.created_at, bindparam(f"asked_{name}", type_=MOMENT))
        for name in wanted.bounds
    )
    return and_(true(), *times)


def lanes_matching(project_id: ProjectId, tree: Filter) -> ColumnElement[bool]:
    """Match the lanes of a tree that is `of_ids_only`."""
    return and_(lanes.c.project_id == project_id, _condition(_with(Given, tree), lanes))


def lanes_with(pinned: Iterable[str]) -> ColumnElement[bool]:
    """Match lanes of the project `in_project` whose ids equal the parameters with the same names.

    Without a name, no lane matches.
    """
    return owned_by(lanes, list(pinned))


def owned_by(table: FromClause, names: Collection[str]) -> ColumnElement[bool]:
    """Like `lanes_with`, for rows of a table with the columns of entity ids."""
    if not names:
        return false()
    ids = [table.c[name] == bindparam(name, type_=Text) for name in names]
    return and_(table.c.project_id == IN_PROJECT, shown(table, names), *ids)


def shown(table: FromClause, ids: Collection[str] = ()) -> ColumnElement[bool]:
    """Leave out the rows of temporary runs, unless `run_id` is one of the entity ids in `ids`.

    Every read that returns texts or ids of several scopes has this condition, or `shown_of`.
    """
    # The condition of the index of shown memories, as it stands there.
    return true() if "run_id" in ids else ~table.c.temporary


def shown_of(table: FromClause, tree: Filter) -> ColumnElement[bool]:
    """Leave out the rows of temporary runs that the tree does not name."""
    return or_(shown(table), *(_test(test, table) for test in named_runs(tree)))


def shown_lane(lane_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    """Leave out the rows whose lane is that of a temporary run."""
    # The condition of ix_lanes_temporary: its negation would read all lanes. OFFSET 0 makes it a
    # look-up for each row: the planner expects a join to leave no row if all are of one lane, and
    # then sorts all rows for a page.
    temporary = select(true()).where(lanes.c.id == lane_id, lanes.c.temporary)
    return ~exists(temporary.offset(literal_column("0")).correlate_except(lanes))


def _with(take: Callable[[Any], Given | Named], tree: Filter) -> Filter:
    """Apply `take` to all values of the tree, except to those that mean any value or none.

    Categories in a list with null become two tests: the empty list of categories is no value.
    """
    match tree:
        case AllOf(of) | AnyOf(of):
            return replace(tree, of=tuple(_with(take, part) for part in of))
        case Not(of):
            return Not(_with(take, of))
        case Test("categories", "in", [*values]) if None in values:
            named = replace(tree, value=[value for value in values if value is not None])
            return AnyOf((_with(take, named), replace(tree, operator="eq", value=None)))
        case Test():
            key = None if tree.path is None else Key(take(tree.path), "." in tree.path)
            return replace(tree, value=_taken(take, tree), path=key)
        case _:
            assert_never(tree)


def _taken(take: Callable[[Any], Given | Named], test: Test) -> Given | Named | str | None:
    values = test.value if test.operator in LISTED else [test.value]
    if ANY in values:
        return ANY
    # In metadata, null is an ordinary value; in a list of ids, it matches nothing.
    if test.value is None and test.field != "metadata":
        return None
    return take(_value(test, values))


def _value(test: Test, values: list[Any]) -> Any:
    """The test's value in the form of the SQL parameter."""
    if test.operator in PATTERNS:
        return str(test.value)
    match test.field:
        case "metadata":
            packed = [json.dumps(value) for value in values]
            return packed if test.operator in LISTED else packed[0]
        case "categories":
            return values
        case _:
            return test.value


def _condition(tree: Filter, table: FromClause) -> ColumnElement[bool]:
    """Condition of a tree whose values are `Given` or `Named`."""
    match tree:
        case AllOf(of):
            return and_(true(), *(_condition(part, table) for part in of))
        case AnyOf(of):
            return or_(false(), *(_condition(part, table) for part in of))
        case Not(of):
            # A comparison with null is null, and NOT null hides the row: make it false first.
            return not_(func.coalesce(_condition(of, table), false()))
        case Test():
            return _test(tree, table)
        case _:
            assert_never(tree)


def _test(test: Test, table: FromClause) -> ColumnElement[bool]:
    """Condition of one test on a column."""
    if test.field == "metadata":
        return _metadata(test, table)
    if test.field == "categories":
        return _categories(test, table)
    column: ColumnElement[Any] = table.c[NAMES.get(test.field, test.field)]
    if test.value == ANY:
        return column.is_(None) if test.operator == "ne" else column.is_not(None)
    compare = COMPARISONS[test.operator]
    if test.value is None:
        return compare(column, None)
    if test.operator == "in":
        return compare(column, test.value.of(ARRAY(column.type)))
    return compare(column, test.value.of(MOMENT if test.field in TIMES else Text()))


MOMENT = DateTime(timezone=True)
COMPARISONS: dict[str, Callable[[ColumnElement[Any], Any], ColumnElement[bool]]] = {
    "eq": lambda column, value: column.is_(None) if value is None else column == value,
    "ne": lambda column, value: column.is_distinct_from(value),
    "in": lambda column, values: column == any_(values),
    "gt": lambda column, value: column > value,
    "gte": lambda column, value: column >= value,
    "lt": lambda column, value: column < value,
    "lte": lambda column, value: column <= value,
    # Not LIKE: its time grows with the product of both lengths, and nothing can interrupt it.
    "contains": lambda column, value: func.strpos(column, value) > 0,
    "icontains": lambda column, value: func.strpos(func.lower(column), func.lower(value)) > 0,
}


def _metadata(test: Test, table: FromClause) -> ColumnElement[bool]:
    """Condition of one test on a metadata key; values are compared as JSON."""
    stored = _at(test.path, table)
    if test.value == ANY:
        absent = func.coalesce(func.jsonb_typeof(stored), "null") == "null"
        return absent if test.operator in ("ne", "nin") else not_(absent)
    if test.operator in LISTED:
        among: ColumnElement[bool] = stored == any_(
            cast(test.value.of(ARRAY(Text())), ARRAY(JSONB))
        )
        among = func.coalesce(among, false())
        return among if test.operator == "in" else not_(among)
    text = test.value.of(Text())
    if test.operator in PATTERNS:
        return COMPARISONS["icontains"](_as_text(stored), text)
    value = cast(text, JSONB)
    if test.operator in ORDERED:
        return _compared(test.operator, stored, value)
    return (
        stored.is_not_distinct_from(value)
        if test.operator == "eq"
        else stored.is_distinct_from(value)
    )


def _compared(
    comparison: str, stored: ColumnElement[Any], value: ColumnElement[Any]
) -> ColumnElement[bool]:
    """Compare numbers with numbers, and strings with strings by code points.

    Values of two different types are never in order.
    """
    compare = COMPARISONS[comparison]
    kind = func.jsonb_typeof(value)
    strings = compare(collate(_as_text(stored), "C"), _as_text(value))
    by_kind = case((kind == "number", compare(stored, value)), else_=strings)
    return and_(func.jsonb_typeof(stored) == kind, by_kind)


def _as_text(stored: ColumnElement[Any]) -> ColumnElement[str]:
    """A JSON string without its quotes; any other value as JSON text."""
    return stored.op("#>>", return_type=Text())(cast([], ARRAY(Text)))


def _at(key: Key, table: FromClause) -> ColumnElement[Any]:
    """The metadata value of a key.

    If the key does not exist and has dots, it is the value along the path.
    """
    name, stored = key.name.of(Text()), table.c.metadata
    plain: ColumnElement[Any] = stored.op("->", return_type=JSONB())(name)
    if not key.dotted:
        return plain
    along = stored.op("#>", return_type=JSONB())(func.string_to_array(name, "."))
    either: ColumnElement[Any] = func.coalesce(plain, along, type_=JSONB())
    return either


def _categories(test: Test, table: FromClause) -> ColumnElement[bool]:
    """Match memories with one of these categories.

    `contains`: the text is part of a category's name, in any case.
    """
    column = table.c.categories
    if test.value in (ANY, None):
        filled = func.cardinality(column) > 0
        return filled if (test.value == ANY) == (test.operator != "ne") else not_(filled)
    if test.operator == "contains":
        each: ColumnElement[str] = func.unnest(column, type_=Text()).column_valued("each")
        return exists(select(true()).where(COMPARISONS["icontains"](each, test.value.of(Text()))))
    overlaps: ColumnElement[bool] = column.overlap(test.value.of(ARRAY(Text())))
    return not_(overlaps) if test.operator == "ne" else overlaps
