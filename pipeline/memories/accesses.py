"""Accesses: how often searches returned each memory, for projects with decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import bindparam, select

from pipeline.domain.decay import Accesses
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memory_accesses
from pipeline.memories.sql import statement

_ADD = statement("add_accesses").bindparams(bindparam("ids"), bindparam("counts"))


class AccessCounts(LedgerStore):
    """Store of accesses."""

    async def of(self, project_id: ProjectId, ids: Sequence[UUID]) -> Mapping[UUID, Accesses]:
        """Return the accesses of the project's memories; one without any is left out."""
        if not ids:
            return {}
        table = memory_accesses
        query = select(table.c.memory_id, table.c.accesses, table.c.last_at).where(
            table.c.project_id == project_id, among(table.c.memory_id, ids)
        )
        rows = await fetch(self._engine, query)
        return {row.memory_id: Accesses(row.accesses, row.last_at) for row in rows}

    async def add(self, counts: Mapping[UUID, int]) -> None:
        """Add numbers of accesses. Memories that are deleted by now are left out."""
        values = {"ids": list(counts), "counts": list(counts.values())}
        await execute(self._engine, _ADD, values)
