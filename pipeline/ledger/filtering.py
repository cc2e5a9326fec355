"""A filter tree as a condition on the memories table, or on turns under the same column names.

A null is never equal: `ne` includes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_never
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Date,
    FromClause,
    Text,
    Uuid,
    and_,
    any_,
    cast,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pipeline.filters import ANY, AllOf, AnyOf, Filter, Not, Test
from pipeline.ledger.schema import lanes, memories

NAMES = {"timestamp": "valid_from", "keywords": "text", "memory_ids": "id"}


def matches(
    project_id: UUID, tree: Filter | None, table: FromClause = memories
) -> ColumnElement[bool]:
    """The tree, inside one project: no filter can reach across. None is all of the project."""
    mine = table.c.project_id == project_id
    return mine if tree is None else and_(mine, _condition(tree, table))


def among(column: ColumnElement[Any], ids: Iterable[UUID]) -> ColumnElement[bool]:
    """Any of these ids, as one array: the statement is the same for any number of them, and a list
    of parameters would end at 32,767.
    """
    return column == any_(literal(list(ids), ARRAY(Uuid)))


def lanes_matching(project_id: UUID, tree: Filter) -> ColumnElement[bool]:
    """The lanes of the scopes that a tree `of_ids_only` asks for."""
    return and_(lanes.c.project_id == project_id, _condition(tree, lanes))


def unexpired(table: FromClause = memories) -> ColumnElement[bool]:
    """Through its last day, by the calendar of UTC."""
    today = cast(func.timezone("UTC", func.now()), Date)
    return or_(table.c.expiration_date.is_(None), table.c.expiration_date >= today)


def lanes_of(project_id: UUID, pinned: dict[str, str]) -> ColumnElement[bool]:
    """Lanes whose ids equal those the filter pins; none where it pins none."""
    if not pinned:
        return false()
    ids = [lanes.c[name] == value for name, value in pinned.items()]
    return and_(lanes.c.project_id == project_id, *ids)


def _condition(tree: Filter, table: FromClause) -> ColumnElement[bool]:
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
    if test.field == "metadata":
        return _metadata(test, table)
    if test.field == "categories":
        return _categories(test, table)
    held: ColumnElement[Any] = table.c[NAMES.get(test.field, test.field)]
    if ANY in (test.value if isinstance(test.value, list) else [test.value]):
        return held.is_(None) if test.operator == "ne" else held.is_not(None)
    return COMPARISONS[test.operator](held, test.value)


COMPARISONS: dict[str, Callable[[ColumnElement[Any], Any], ColumnElement[bool]]] = {
    "eq": lambda held, value: held.is_(None) if value is None else held == value,
    "ne": lambda held, value: held.is_distinct_from(value),
    "in": lambda held, values: held.in_(values),
    "gt": lambda held, value: held > value,
    "gte": lambda held, value: held >= value,
    "lt": lambda held, value: held < value,
    "lte": lambda held, value: held <= value,
    "contains": lambda held, value: held.contains(value, autoescape=True),
    "icontains": lambda held, value: held.icontains(value, autoescape=True),
}


def _metadata(test: Test, table: FromClause) -> ColumnElement[bool]:
    held = _at(str(test.path), table)
    if test.value == ANY:
        absent = func.coalesce(func.jsonb_typeof(held), "null") == "null"
        return absent if test.operator == "ne" else not_(absent)
    match test.operator:
        case "eq":
            return held.is_not_distinct_from(cast(test.value, JSONB))
        case "ne":
            return held.is_distinct_from(cast(test.value, JSONB))
        case _:
            said: ColumnElement[str] = held.op("#>>", return_type=Text())(cast([], ARRAY(Text)))
            return said.icontains(str(test.value), autoescape=True)


def _at(path: str, table: FromClause) -> ColumnElement[Any]:
    """What metadata holds under a key, or, where no key has dots in its name, along a path."""
    held: ColumnElement[Any] = table.c.metadata[path]
    if "." not in path:
        return held
    along = table.c.metadata.op("#>", return_type=JSONB())(cast(path.split("."), ARRAY(Text)))
    found: ColumnElement[Any] = func.coalesce(held, along, type_=JSONB())
    return found


def _categories(test: Test, table: FromClause) -> ColumnElement[bool]:
    """Any of them is one of the memory's; `contains`: is a part of one's name, in any case."""
    held = table.c.categories
    asked = test.value if isinstance(test.value, list) else [test.value]
    if test.operator == "contains":
        each: ColumnElement[str] = func.unnest(held, type_=Text()).column_valued("each")
        return exists(select(true()).where(each.icontains(test.value, autoescape=True)))
    if ANY in asked or None in asked:
        filled = func.cardinality(held) > 0
        return filled if (ANY in asked) == (test.operator != "ne") else not_(filled)
    found = or_(false(), *(literal(value) == any_(held) for value in asked))
    return not_(found) if test.operator == "ne" else found
