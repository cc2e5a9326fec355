"""Whose memories there are: the users, agents, apps and runs of a project.

They exist by being named in an add. A row of their own only adds what else is known of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.tenants import ProjectId
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
    kind: str
    id: str
    name: str
    metadata: dict[str, Any]
    memories: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Census:
    """A page of owners, and how many there are of each kind in all."""

    owners: Sequence[Owner]
    totals: Mapping[str, int]


class Owners:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def census(
        self,
        project_id: ProjectId,
        *,
        kind: str | None = None,
        owner_id: str | None = None,
        limit: int,
        offset: int = 0,
    ) -> Census:
        """Those who have memories or were registered; newest first. `kind` and `owner_id` narrow
        the page and the totals.
        """
        values = {
            "project_id": project_id,
            "kind": kind,
            "id": owner_id,
            "limit": limit,
            "offset": offset,
        }
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement("owners"), values)).all()
        found = [
            Owner(r.kind, r.id, r.name, r.metadata, r.memories, r.created_at, r.updated_at)
            for r in rows
        ]
        return Census(found, dict.fromkeys(KINDS, 0) | (rows[0].totals if rows else {}))

    async def named(self, project_id: ProjectId, kind: str, owner_id: str) -> bool:
        """Somebody of that id was ever named, or registered."""
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
        """Write down what is known; again: instead of what was."""
        known = {"name": name, "metadata": metadata}
        query = insert(owners).values(project_id=project_id, kind=kind, id=owner_id, **known)
        key = ["project_id", "kind", "id"]
        again = query.on_conflict_do_update(
            index_elements=key, set_=known | {"updated_at": func.now()}
        )
        async with self._engine.connect() as connection:
            await connection.execute(again)
