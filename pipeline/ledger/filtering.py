"""A filter tree as a condition on the memories table. A null is never equal: `ne` includes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never
from uuid import UUID

from sqlalchemy import ColumnElement, and_, cast, false, func, not_, or_, true
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.filters import ANY, ENTITY_IDS, AllOf, AnyOf, Filter, Not, Test
from pipeline.ledger.schema import lanes, memories

COLUMNS = {
    **{name: memories.c[name] for name in ENTITY_IDS},
    "created_at": memories.c.created_at,
    "updated_at": memories.c.updated_at,
    "timestamp": memories.c.valid_from,
    "expiration_date": memories.c.expiration_date,
    "text": memories.c.text,
    "keywords": memories.c.text,
    "memory_ids": memories.c.id,
}


def matches(project_id: UUID, tree: Filter) -> ColumnElement[bool]:
    """The tree, inside one project: no filter can reach across."""
    return and_(memories.c.project_id == project_id, _condition(tree))


def unexpired() -> ColumnElement[bool]:
    """Through its last day, by the calendar of UTC."""
    today = cast(func.timezone("UTC", func.now()), memories.c.expiration_date.type)
    return or_(memories.c.expiration_date.is_(None), memories.c.expiration_date >= today)


def lanes_of(project_id: UUID, pinned: dict[str, str]) -> ColumnElement[bool]:
    """Lanes whose ids equal those the filter pins; none where it pins none."""
    if not pinned:
        return false()
    ids = [lanes.c[name] == value for name, value in pinned.items()]
    return and_(lanes.c.project_id == project_id, *ids)


def _condition(tree: Filter) -> ColumnElement[bool]:
    match tree:
        case AllOf(of):
            return and_(true(), *(_condition(part) for part in of))
        case AnyOf(of):
            return or_(false(), *(_condition(part) for part in of))
        case Not(of):
            # A comparison with null is null, and NOT null hides the row: make it false first.
            return not_(func.coalesce(_condition(of), false()))
        case Test():
            return _test(tree)
        case _:
            assert_never(tree)


def _test(test: Test) -> ColumnElement[bool]:
    if test.field == "metadata":
        return _metadata(test)
    column: ColumnElement[Any] = COLUMNS[test.field]
    if ANY in (test.value if isinstance(test.value, list) else [test.value]):
        return column.is_(None) if test.operator == "ne" else column.is_not(None)
    return COMPARISONS[test.operator](column, test.value)


COMPARISONS: dict[str, Callable[[ColumnElement[Any], Any], ColumnElement[bool]]] = {
    "eq": lambda column, value: column.is_(None) if value is None else column == value,
    "ne": lambda column, value: column.is_distinct_from(value),
    "in": lambda column, values: column.in_(values),
    "gt": lambda column, value: column > value,
    "gte": lambda column, value: column >= value,
    "lt": lambda column, value: column < value,
    "lte": lambda column, value: column <= value,
    "contains": lambda column, value: column.contains(value, autoescape=True),
    "icontains": lambda column, value: column.icontains(value, autoescape=True),
}


def _metadata(test: Test) -> ColumnElement[bool]:
    held: ColumnElement[Any] = memories.c.metadata[test.path]
    match test.operator:
        case "eq":
            return held.is_not_distinct_from(cast(test.value, JSONB))
        case "ne":
            return held.is_distinct_from(cast(test.value, JSONB))
        case _:
            said: ColumnElement[str] = memories.c.metadata[test.path].astext
            return said.icontains(str(test.value), autoescape=True)
