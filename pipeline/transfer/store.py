"""Reads of the ledger that an import needs, and the owners that it registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import orjson

from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.store import LedgerStore
from pipeline.text.equality import text_hash
from pipeline.transfer.planning import Stored, ids_of
from pipeline.transfer.records import EntityRecord, MemoryRecord, OwnerRecord, ScopedRecord
from pipeline.transfer.sql import statement


class Transfers(LedgerStore):
    """Store of imports."""

    async def stored(self, scope: Scope, records: Sequence[ScopedRecord]) -> Stored:
        """The rows of these lines that the ledger has already."""
        memories = [record for record in records if isinstance(record, MemoryRecord)]
        keys = [record.key for record in records if isinstance(record, EntityRecord)]
        values = {
            "lane_id": scope.lane_id,
            "ids": list(ids_of(records)),
            "keys": keys,
            "hashes": [text_hash(memory.text) for memory in memories],
        }
        rows = await self._direct.rows(statement("stored"), values)
        return Stored(
            frozenset(row.id for row in rows if row.kind == "id"),
            frozenset(row.name for row in rows if row.kind == "key"),
            {row.digest: row.id for row in rows if row.kind == "text"},
        )

    async def own_ids(self, project_id: ProjectId, ids: Collection[UUID]) -> frozenset[UUID]:
        """Return the given ids that belong to rows of the project."""
        values = {"project_id": project_id, "ids": list(ids)}
        rows = await self._direct.rows(statement("own_ids"), values)
        return frozenset(row.id for row in rows)

    async def has_other_projects(self, project_id: ProjectId) -> bool:
        """Tell if the server has a project beside this one."""
        values = {"project_id": project_id}
        [row] = await self._direct.rows(statement("has_other_projects"), values)
        return bool(row.shared)

    async def registered(self, project_id: ProjectId, owners: Sequence[OwnerRecord]) -> int:
        """Number of these owners that are registered already."""
        values = {
            "project_id": project_id,
            "kinds": [owner.kind for owner in owners],
            "ids": [owner.id for owner in owners],
        }
        return len(await self._direct.rows(statement("registered_owners"), values))

    async def register(self, project_id: ProjectId, owners: Sequence[OwnerRecord]) -> int:
        """Register the owners that are not registered yet. Returns their number."""
        rows: list[dict[str, Any]] = [owner.model_dump(exclude={"type"}) for owner in owners]
        values = {"project_id": project_id, "owners": orjson.dumps(rows).decode()}
        return len(await self._direct.rows(statement("register_owners"), values))
