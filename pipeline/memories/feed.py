"""The history of an owner's memories: the order in which its lists read the changes.

    newest changed memories of the owner's lanes ──► their states ──► those newer than the change
    of the first memory left out: a page

No state of a memory is newer than the memory's `changed_at`, so the work follows the page, not the
memories of the owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    DateTime,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    true,
)

from pipeline.ledger.counting import COUNTED
from pipeline.ledger.filter_conditions import IN_PROJECT, owned_by, shown
from pipeline.ledger.owned_rows import (
    DENSE,
    FEW_LANES,
    MOST,
    MOST_LANES,
    MOST_ROWS,
    ZERO,
    OwnerShape,
    Step,
    among_newest,
    first,
    lanes_of,
)
from pipeline.ledger.tables import memories, memory_history
from pipeline.ledger.tables.memories import CHANGED_AT

# Memories that are read besides one for each state of the page: a repetition, which is no change of
# the history, moves a memory among them. If they are too few, WIDER times as many are read.
SPARE, WIDER = 100, 8
# Maximum number of memories whose states are read for a page.
MOST_MEMORIES = 2 * COUNTED
TOUCHED = bindparam("touched", type_=Integer)
BEFORE_ALL = cast(literal_column("'-infinity'"), DateTime(timezone=True))


class ChangeRows:
    """The states of memories, newest first, as rows of an owner's list."""

    key = ("memory_id", "version")

    def order(self, rows: FromClause) -> tuple[ColumnElement[Any], ...]:
        """Newest first."""
        return (rows.c.created_at.desc(), rows.c.memory_id, rows.c.version.desc())

    def pages(self, last: int) -> Iterator[Step]:
        """Statements for the newest states: of few lanes, of the project, of more."""
        touched = last + SPARE
        yield self._by_lanes, {"of_lanes": FEW_LANES, "touched": touched}
        yield self._by_project, {"most": last * DENSE}
        yield self._by_project, {"most": last + COUNTED}
        while touched < max(MOST_MEMORIES, last + SPARE):
            touched = min(MOST_MEMORIES, touched * WIDER)
            yield self._by_lanes, {"of_lanes": MOST_LANES, "touched": touched}
        yield self._by_project, {"most": max(MOST_ROWS, last + COUNTED)}

    def counted(self, own: FromClause) -> Select[Any]:
        """All states of the memories of these lanes."""
        # OFFSET keeps the planner from reading all memories of the project instead.
        here = select(memories.c.id).where(memories.c.lane_id == own.c.id).offset(ZERO)
        memory = here.correlate(own).lateral("memory")
        states = select(memory_history.c.version).where(memory_history.c.memory_id == memory.c.id)
        state = states.offset(ZERO).correlate(memory).lateral("state")
        return select(state.c.version).select_from(own.join(memory, true()).join(state, true()))

    def _by_lanes(self, shape: OwnerShape) -> Select[Any]:
        """Select the newest states that the newest changed memories alone decide.

        None if the owner has more lanes.
        """
        own, all_lanes = lanes_of(shape)
        here = (
            select(memories.c.id, CHANGED_AT.label("changed_at"))
            .where(memories.c.lane_id == own.c.id)
            .order_by(CHANGED_AT.desc())
            .limit(TOUCHED + 1)
            .correlate(own)
            .lateral("here")
        )
        changed = select(here).select_from(own.join(here, true())).where(all_lanes)
        order = (here.c.changed_at.desc(), here.c.id)
        touched = changed.order_by(*order).limit(TOUCHED + 1).cte("touched")
        behind = select(touched.c.changed_at).order_by(touched.c.changed_at.desc(), touched.c.id)
        after = func.coalesce(
            behind.offset(TOUCHED).limit(1).correlate(None).scalar_subquery(), BEFORE_ALL
        )
        table = memory_history.c
        state = (
            select(table.memory_id, table.version, table.created_at)
            .where(table.memory_id == touched.c.id, table.created_at > after)
            .correlate(touched)
            .offset(ZERO)
            .lateral("state")
        )
        newest = select(state).select_from(touched.join(state, true()))
        number = select(func.count()).select_from(touched).scalar_subquery()
        whole = and_(all_lanes, number <= TOUCHED)
        return first(self, newest, select(whole.label("whole")))

    def _by_project(self, shape: OwnerShape) -> Select[Any]:
        """Select the owner's states among the newest of the project."""
        table = memory_history
        columns = (table.c.memory_id, table.c.version, table.c.created_at)
        read = (
            select(*columns)
            .where(table.c.project_id == IN_PROJECT, shown(table, shape.names))
            .order_by(*self.order(table))
            .limit(MOST + 1)
            .cte("newest_rows")
        )
        memory = select(memories.c.id.label("owned")).where(
            memories.c.id == read.c.memory_id, owned_by(memories, shape.names)
        )
        return among_newest(self, read, memory)


CHANGES = ChangeRows()
