"""Memories as of a time: one by its id, or a page."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Select, and_, func, or_, select, union_all

from pipeline.domain.errors import NotFound
from pipeline.domain.filters import Filter, pinned
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import Snapshot
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.fetching import fetch
from pipeline.ledger.filter_conditions import matching, shape
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memories, past_states
from pipeline.memories.expiration import unexpired
from pipeline.memories.rows import as_memory
from pipeline.versions.states import is_older, pin_values, reference_time, states


class MemoriesAsOf(LedgerStore):
    """Store of memories at a time. Lists of the current ones: see `pipeline.memories.store`."""

    async def get(self, project_id: ProjectId, memory_id: UUID, snapshot: Snapshot) -> Memory:
        """One memory at a time; with `valid_at`, the statement in its place. Errors: NotFound.

        `memory_id`: also that of a superseded statement, if the snapshot includes these.
        """
        lane = union_all(
            *(
                select(table.c.lane_id).where(
                    table.c.project_id == project_id, table.c.id == memory_id
                )
                for table in (memories, past_states)
            )
        )
        lane_ids = await fetch(self._single, lane)
        table = states(snapshot.kind, ("lane_id",))
        own = table.c.id == memory_id
        in_its_place = or_(own, table.c.superseded_by == memory_id)
        query = select(table).where(in_its_place if snapshot.valid_at else own)
        values = {"in_project": project_id, **snapshot.values}
        values |= pin_values({"lane_id": lane_ids[0].lane_id if lane_ids else None})
        rows = await fetch(self._single, query, values)
        if not rows:
            raise NotFound("Memory not found!")
        return as_memory(rows[0])

    async def page(
        self,
        project_id: ProjectId,
        tree: Filter,
        *,
        snapshot: Snapshot,
        expired: bool,
        limit: int,
        offset: int,
        older: bool = False,
    ) -> tuple[list[Memory], int]:
        """A page of the memories that match, as `Memories.page`, at the time of the snapshot.

        Their number is a lower bound for far pages: see pipeline.ledger.counting.

        Filters compare the values of that time. `expired`: include memories past their expiration
        date then. `older`: include older statements of a slot that has one value at a time.
        """
        shaped, values = shape(tree)
        pins = pinned(tree)
        table = states(snapshot.kind, tuple(sorted(pins)))
        where = matching(shaped, table)
        if not expired:
            where = and_(where, unexpired(table, reference_time(snapshot.kind)))
        if not (older or snapshot.superseded):
            where = and_(where, ~is_older(table))
        values |= {"in_project": project_id, **snapshot.values, **pin_values(pins)}
        query = _newest_first(table, where).limit(limit).offset(offset)
        some = select(table.c.id).where(where).limit(offset + limit + COUNTED).subquery("some")
        count = await fetch(self._single, select(func.count()).select_from(some), values)
        return [as_memory(row) for row in await fetch(self._single, query, values)], count[0][0]


def _newest_first(table: FromClause, where: ColumnElement[bool]) -> Select[Any]:
    """The order of lists; the states of one memory, newest first."""
    columns = [column for column in table.c if column.name not in ("embedding", "terms")]
    order = (table.c.created_at.desc(), table.c.memory_id, table.c.version.desc(), table.c.id)
    return select(*columns).where(where).order_by(*order)
