"""Owners of memories: the users, agents, apps and runs of a project.

An owner exists once an add names it. A row in `owners` only adds a name and metadata.
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
    """A user, agent, app or run with its number of memories."""

    kind: str
    id: str
    name: str
    metadata: dict[str, Any]
    memories: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Census:
    """A page of owners, and the total number of owners of each kind."""

    owners: Sequence[Owner]
    totals: Mapping[str, int]


class Owners:
    """List and register the owners of a project."""

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
        """Return a page of owners that have memories or are registered, newest first.

        `kind` and `owner_id` filter both the page and the totals.
        """
        # A statement for each case: a generic plan of `kind IS NULL OR …` reads all owners.
        if owner_id is not None:
            query = statement("owners_with_id") if kind is None else statement("owner")
        else:
            query = statement("owners") if kind is None else statement("owners_of_kind")
        given = {"kind": kind, "id": owner_id, "project_id": project_id}
        values: dict[str, Any] = {"limit": limit, "offset": offset}
        values |= {column: value for column, value in given.items() if value is not None}
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query, values)).all()
        page = [
            Owner(r.kind, r.id, r.name, r.metadata, r.memories, r.created_at, r.updated_at)
            for r in rows
        ]
        return Census(page, dict.fromkeys(KINDS, 0) | (rows[0].totals if rows else {}))

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
