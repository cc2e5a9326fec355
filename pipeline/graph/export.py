"""Export of the stored graph: every entity and relation with both their times, ended ones too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select

from pipeline.domain.tenants import ProjectId
from pipeline.graph.sql import statement
from pipeline.ledger.filter_conditions import lanes_with
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import lanes


class GraphExport(LedgerStore):
    """Read the whole graph of some ids in pages."""

    async def page(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        *,
        as_of: datetime | None,
        limit: int,
        offset: int,
    ) -> tuple[list[dict[str, Any]], int]:
        """A page of entities, then of relations, oldest first, and the number of all.

        Relations name the entities that their facts name, also if these are merged into others.
        `as_of`: as it was stored at that time.
        """
        if not pinned:
            return [], 0
        query = select(lanes.c.id).where(lanes_with(pinned))
        scopes = await self._direct.rows(query, {**pinned, "in_project": project_id})
        values: dict[str, Any] = {"lanes": [row.id for row in scopes], "as_of": as_of}
        values |= {"limit": limit, "offset": offset}
        rows = await self._direct.rows(statement("export"), values)
        return [dict(row["row"]) for row in rows], rows[0]["count"] if rows else 0
