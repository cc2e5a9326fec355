"""Outbox of the graph: changes of entities and relations that the graph server does not have yet.

Triggers of the two tables write it, in the transaction of each change, so no write can bypass it;
without a registered server they write nothing. A row names what changed, not how: the server gets
the state at the time of the write, so rows may be processed twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, exists, func, insert, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.tenants import ProjectId
from pipeline.graph.ports import GoneEdge, GoneNode, MirrorChanges, MirrorEdge, MirrorNode
from pipeline.graph.sql import statement
from pipeline.ledger.engine import is_locked
from pipeline.ledger.fetching import execute, fetch_value
from pipeline.ledger.locks import advisory_lock
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, graph_mirrors, graph_outbox, relations

# Key of an advisory lock; no other lock uses it.
MIRROR_LOCK = 0x6D697272
# Longest wait of a fill for one writer, and the pause before it tries again.
LOCK_TIMEOUT, WRITERS_PAUSE_S = "250ms", 5.0


@dataclass(frozen=True, slots=True)
class OutboxBatch:
    """The oldest rows of the outbox, by id, and the changes that they name."""

    ids: Sequence[int]
    changes: MirrorChanges


class GraphOutbox(LedgerStore):
    """Queue of changes for one graph server, processed by one process at a time."""

    def __init__(self, engine: AsyncEngine, long: AsyncEngine) -> None:
        """`long`: pool for statements on many rows."""
        super().__init__(engine)
        self._long = long

    def alone(self, *, wait: bool) -> AbstractAsyncContextManager[bool]:
        """Lock out other processes that write to the server. Yields False if one does.

        `wait`: wait for the other process instead.
        """
        return advisory_lock(self._long, MIRROR_LOCK, wait=wait)

    async def register(self, name: str) -> None:
        """Queue changes for this server from now on, and no longer for another one."""
        row = postgresql.insert(graph_mirrors).values(name=name).on_conflict_do_nothing()
        async with self._long.begin() as connection:
            await connection.execute(delete(graph_mirrors).where(graph_mirrors.c.name != name))
            await connection.execute(row)

    async def filled(self, name: str) -> bool | None:
        """True if this server was filled; None if it is not the registered one."""
        filled = select(graph_mirrors.c.filled_at.is_not(None)).where(graph_mirrors.c.name == name)
        is_filled: bool | None = await fetch_value(self._single, filled)
        return is_filled

    async def refill(self) -> None:
        """Have the server filled again from the beginning."""
        await execute(self._single, update(graph_mirrors).values(filled_at=None))

    async def fill(self) -> None:
        """Queue all entities and relations of the ledger."""
        while not await self._after_writers():  # noqa: ASYNC110  other processes write
            await asyncio.sleep(WRITERS_PAUSE_S)
        async with self._long.begin() as connection:
            for table, column in ((entities, "entity_id"), (relations, "relation_id")):
                rows = select(table.c.project_id, table.c.lane_id, table.c.id)
                columns = ["project_id", "lane_id", column]
                await connection.execute(insert(graph_outbox).from_select(columns, rows))
            await connection.execute(update(graph_mirrors).values(filled_at=func.now()))

    async def _after_writers(self) -> bool:
        """Wait for writers whose triggers ran before the server was registered.

        False if one takes longer than LOCK_TIMEOUT: all later writers wait behind this lock.
        """
        try:
            async with self._long.begin() as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
                await connection.execute(text("LOCK TABLE entities, relations IN SHARE MODE"))
        except DBAPIError as error:
            if not is_locked(error):
                raise
            return False
        return True

    async def close(self) -> None:
        """Empty the queue and stop queueing: no graph server is configured."""
        async with self._long.begin() as connection:
            if await connection.scalar(select(exists().where(graph_mirrors.c.name.is_not(None)))):
                await connection.execute(delete(graph_mirrors))
                await connection.execute(delete(graph_outbox))

    async def covers(self, name: str, project_id: ProjectId, lane_ids: Sequence[UUID]) -> bool:
        """True if this server has every committed change of these lanes."""
        values = {"name": name, "project_id": project_id, "lanes": list(lane_ids)}
        row = await self._direct.row(statement("is_mirrored"), values)
        return bool(row and row.covered)

    async def expects(self) -> bool:
        """True if a filled server must have entities: the ledger has some, and none wait."""
        some = exists().where(entities.c.id.is_not(None)) & ~exists().where(
            graph_outbox.c.id.is_not(None)
        )
        return bool(await fetch_value(self._single, select(some)))

    async def lag_s(self) -> float:
        """Age in seconds of the oldest change that waits; 0 if none does."""
        row = await self._direct.row(statement("outbox_lag"), {})
        return float(row.lag_s) if row else 0.0

    async def batch(self, limit: int) -> OutboxBatch | None:
        """The oldest changes, with the present state of their rows; None if there are none."""
        rows = await self._direct.rows(statement("outbox"), {"limit": limit})
        if not rows:
            return None
        edge_ids = [row.relation_id for row in rows if row.relation_id and not row.gone]
        edges = await self._direct.rows(statement("mirror_edges"), {"ids": edge_ids})
        node_ids = {row.entity_id for row in rows if row.entity_id and not row.gone}
        node_ids.update(end for edge in edges for end in (edge.source_id, edge.destination_id))
        nodes = await self._direct.rows(statement("mirror_nodes"), {"ids": list(node_ids)})
        gone = [row for row in rows if row.gone]
        changes = MirrorChanges(
            [GoneEdge(r.relation_id, r.project_id, r.source_id) for r in gone if r.relation_id],
            [GoneNode(row.entity_id, row.project_id) for row in gone if row.entity_id],
            [MirrorNode(**row) for row in nodes],
            [MirrorEdge(**row) for row in edges],
        )
        return OutboxBatch([row.id for row in rows], changes)

    async def done(self, batch: OutboxBatch) -> None:
        """Remove rows whose changes the server has."""
        await execute(self._single, delete(graph_outbox).where(graph_outbox.c.id.in_(batch.ids)))
