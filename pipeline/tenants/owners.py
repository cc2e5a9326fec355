"""Owners of memories: the users, agents, apps and runs of a project.

An owner exists once an add names it. A row in `owners` only adds a name and metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.tables import lanes, owners
from pipeline.tenants.sql import statement

KINDS: Mapping[str, str] = {
    "user": "user_id",
    "agent": "agent_id",
    "app": "app_id",
    "run": "run_id",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, agent, app or run with its number of memories."""

    kind: str
    id: str
    name: str
    metadata: dict[str, Any]
    memories: int
    created_at: datetime
    updated_at: datetime


class Owners:
    """List and register the owners of a project."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def page(
        self, project_id: ProjectId, *, kind: str | None = None, limit: int, offset: int = 0
    ) -> list[Owner]:
        """A page of the owners that have memories or are registered, newest first.

        Of the registered owners without memories, `COUNTED` before the page are read.
        """
        values = {"limit": limit, "offset": offset, "counted": COUNTED}
        return await self._owners(statement("owners"), project_id, kind, values)

    async def with_id(
        self, project_id: ProjectId, owner_id: str, *, kind: str | None = None
    ) -> list[Owner]:
        """The owners with this id that have memories or are registered, one of a kind."""
        values = {"id": owner_id, "limit": len(KINDS)}
        return await self._owners(statement("owner"), project_id, kind, values)

    async def totals(self, project_id: ProjectId, *, registered: bool = True) -> dict[str, int]:
        """Numbers of owners by kind, without temporary runs.

        `registered`: with those that have no memories, of which at most `COUNTED` are counted.
        """
        values = {"project_id": project_id, "kinds": list(KINDS), "counted": COUNTED}
        values |= {"registered": registered}
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement("owner_totals"), values)).all()
        return dict.fromkeys(KINDS, 0) | {row.kind: row.number for row in rows}

    async def _owners(
        self, query: TextClause, project_id: ProjectId, kind: str | None, values: Mapping[str, Any]
    ) -> list[Owner]:
        kinds = [kind] if kind is not None else list(KINDS)
        given = {"project_id": project_id, "kinds": kinds, **values}
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query, given)).all()
        return [
            Owner(r.kind, r.id, r.name, r.metadata, r.memories, r.created_at, r.updated_at)
            for r in rows
        ]

    async def named(self, project_id: ProjectId, kind: str, owner_id: str) -> bool:
        """Tell if an add ever named this owner, or if it is registered."""
        lane = select(lanes.c.id).where(
            lanes.c.project_id == project_id, lanes.c[KINDS[kind]] == owner_id
        )
        row = select(owners.c.id).where(
            owners.c.project_id == project_id, owners.c.kind == kind, owners.c.id == owner_id
        )
        async with self._engine.connect() as connection:
            return bool(await connection.scalar(select(lane.exists() | row.exists())))

    async def register(
        self,
        project_id: ProjectId,
        kind: str,
        owner_id: str,
        *,
        name: str,
        metadata: Mapping[str, Any],
    ) -> None:
        """Insert or update the owner's name and metadata."""
        known = {"name": name, "metadata": metadata}
        query = insert(owners).values(project_id=project_id, kind=kind, id=owner_id, **known)
        key = ["project_id", "kind", "id"]
        again = query.on_conflict_do_update(
            index_elements=key, set_=known | {"updated_at": func.now()}
        )
        async with self._engine.connect() as connection:
            await connection.execute(again)
