"""Superseded memories: older statements of a slot that has one value at a time.

The mode `append` adds facts without a comparison, so several values of such a slot can be active.
Reads take the newest statement as current. Nothing is written: if the newest one is deleted or
expires, the one before it is current again. Memories that were compared supersede each other only
by their decisions; a pair counts here if one of the two was appended.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    ScalarSelect,
    and_,
    case,
    func,
    or_,
    select,
    tuple_,
)

from pipeline.ledger.tables import ACTIVE, memories
from pipeline.memories.expiration import unexpired
from pipeline.memories.rows import open_conflict, open_suggestion
from pipeline.text.statements.slots import Cardinality

newer = memories.alias("newer")


def superseded(rows: FromClause = memories) -> ColumnElement[bool]:
    """Match rows that a newer statement of their slot supersedes.

    `rows`: memories, or a subquery with its columns.
    """
    by_appended = _newest(rows, newer, None, newer.c.appended).is_not(None)
    by_any = and_(rows.c.appended, _newest(rows, newer, None).is_not(None))
    return and_(rows.c.slot.is_not(None), or_(by_appended, by_any))


def current_of_slot(
    rows: FromClause, others: FromClause, at: ColumnElement[datetime] | None = None
) -> ColumnElement[UUID | None]:
    """Id of the current statement of a row's slot; NULL if that is the row itself.

    `rows` and `others` have the columns of `memories`. `at`: the time whose expiration dates count.
    """
    by_any = case(
        (rows.c.appended, _newest(rows, others, at)),
        else_=_newest(rows, others, at, others.c.appended),
    )
    return case((rows.c.slot.is_not(None), by_any))


def readable_columns() -> list[ColumnElement[Any]]:
    """The columns of `memories`, `conflict_id` and `suggestion_id`.

    `superseded_by` also names the current statement of the slot.
    """
    newest = current_of_slot(memories, newer)
    columns = [column for column in memories.c if column.name != "superseded_by"]
    current = func.coalesce(memories.c.superseded_by, newest).label("superseded_by")
    return [*columns, current, open_conflict, open_suggestion]


def _newest(
    rows: FromClause,
    others: FromClause,
    at: ColumnElement[datetime] | None,
    *where: ColumnElement[bool],
) -> ScalarSelect[UUID]:
    """Id of the newest active statement of the same slot that is newer than the row, or None.

    The order makes the planner read it from an index, and not the rows of the whole slot.
    """
    return (
        select(others.c.id)
        .where(
            others.c.lane_id == rows.c.lane_id,
            others.c.slot == rows.c.slot,
            others.c.state == ACTIVE,
            tuple_(others.c.said_at, others.c.id) > tuple_(rows.c.said_at, rows.c.id),
            # One more of several values replaces none.
            others.c.cardinality.is_distinct_from(Cardinality.SEVERAL),
            unexpired(others, at),
            *where,
        )
        .order_by(others.c.said_at.desc(), others.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
