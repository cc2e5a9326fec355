"""Superseded memories: older statements of a slot that has one value at a time.

The mode `append` adds facts without a comparison, so several values of such a slot can be active.
Reads take the newest statement as current. Nothing is written: if the newest one is deleted or
expires, the one before it is current again. Memories that were compared supersede each other only
by their decisions; a pair counts here if one of the two was appended.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, and_, case, func, or_, select, tuple_

from pipeline.ledger.tables import memories
from pipeline.memories.expiration import unexpired

newer = memories.alias("newer")


def superseded() -> ColumnElement[bool]:
    """Match rows of `memories` that a newer statement of their slot supersedes."""
    by_appended = _newest(newer.c.appended).is_not(None)
    by_any = and_(memories.c.appended, _newest().is_not(None))
    return and_(memories.c.slot.is_not(None), or_(by_appended, by_any))


def readable_columns() -> list[ColumnElement[Any]]:
    """The columns of `memories`; `superseded_by` also names the current statement of the slot."""
    by_any = case((memories.c.appended, _newest()), else_=_newest(newer.c.appended))
    current = case((memories.c.slot.is_not(None), by_any))
    columns = [column for column in memories.c if column.name != "superseded_by"]
    return [*columns, func.coalesce(memories.c.superseded_by, current).label("superseded_by")]


def _newest(*where: ColumnElement[bool]) -> ScalarSelect[UUID]:
    """Id of the newest active statement of the same slot that is newer than the row, or None.

    The order makes the planner read it from an index, and not the rows of the whole slot.
    """
    return (
        select(newer.c.id)
        .where(
            newer.c.lane_id == memories.c.lane_id,
            newer.c.slot == memories.c.slot,
            newer.c.state == "ACTIVE",
            tuple_(newer.c.said_at, newer.c.id) > tuple_(memories.c.said_at, memories.c.id),
            unexpired(newer),
            *where,
        )
        .order_by(newer.c.said_at.desc(), newer.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
