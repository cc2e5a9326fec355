"""Owners of memories: the users, agents, apps and runs of a project.

An owner exists once an add names it. A row in `owners` only adds a name and metadata.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, func, select
from sqlalchemy.dialects.postgresql import insert

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED
from pipeline.ledger.fetching import execute, fetch, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import lanes, owners
from pipeline.tenants.sql import statement

KINDS: Mapping[str, str] = {
    "user": "user_id",
    "agent": "agent_id",
    "app": "app_id",
    "run": "run_id",
}


# Newest owners of each kind among which a part of an id or name is looked for.
LOOKED_THROUGH = 10_000
# Owners whose metadata, of 32 kB at most each, is read at once.
DESCRIBED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, agent, app or run with its number of memories.

    `described`: it has metadata, which a page leaves out.
    """

    kind: str
    id: str
    name: str
    metadata: dict[str, Any]
    memories: int
    created_at: datetime
    updated_at: datetime
    described: bool = False


class Owners(LedgerStore):
    """List and register the owners of a project."""

    async def page(
        self, project_id: ProjectId, *, kind: str | None = None, limit: int, offset: int = 0
    ) -> list[Owner]:
        """A page of the owners that have memories or are registered, newest first.

        Without their metadata, which may be much more than fits an answer: see `with_metadata`.
        Of the registered owners without memories, `COUNTED` before the page are read.
        """
        values = {"limit": limit, "offset": offset, "counted": COUNTED}
        return await self._owners(statement("owners"), project_id, kind, values)

    async def with_metadata(
        self, project_id: ProjectId, page: Sequence[Owner]
    ) -> AsyncIterator[Sequence[Owner]]:
        """Yield the owners of a page with their metadata, DESCRIBED_AT_ONCE at a time, in order."""
        for start in range(0, len(page), DESCRIBED_AT_ONCE):
            part = page[start : start + DESCRIBED_AT_ONCE]
            if any(owner.described for owner in part):
                known = await self._metadata(project_id, part)
                part = [
                    replace(owner, metadata=known.get((owner.kind, owner.id), {})) for owner in part
                ]
            yield part

    async def with_id(
        self, project_id: ProjectId, owner_id: str, *, kind: str | None = None
    ) -> list[Owner]:
        """The owners with this id that have memories or are registered, one of a kind."""
        values = {"id": owner_id, "limit": len(KINDS)}
        return await self._owners(statement("owner"), project_id, kind, values)

    async def matching(
        self, project_id: ProjectId, text: str, *, kind: str | None = None, limit: int
    ) -> list[Owner]:
        """The newest owners whose id or name has this text in it, in upper or lower case.

        Among the newest LOOKED_THROUGH of each kind; an id that equals the text is always returned.
        """
        values = {"text": text, "limit": limit, "among": LOOKED_THROUGH}
        return await self._owners(statement("matching_owners"), project_id, kind, values)

    async def totals(self, project_id: ProjectId, *, registered: bool = True) -> dict[str, int]:
        """Numbers of owners by kind, without temporary runs.

        `registered`: with those that have no memories, of which at most `COUNTED` are counted.
        """
        values = {"project_id": project_id, "kinds": list(KINDS), "counted": COUNTED}
        values |= {"registered": registered}
        rows = await fetch(self._single, statement("owner_totals"), values)
        return dict.fromkeys(KINDS, 0) | {row.kind: row.number for row in rows}

    async def _owners(
        self, query: TextClause, project_id: ProjectId, kind: str | None, values: Mapping[str, Any]
    ) -> list[Owner]:
        kinds = [kind] if kind is not None else list(KINDS)
        given = {"project_id": project_id, "kinds": kinds, **values}
        rows = await fetch(self._single, query, given)
        return [Owner(**{"metadata": {}, **row._asdict()}) for row in rows]

    async def _metadata(
        self, project_id: ProjectId, page: Sequence[Owner]
    ) -> dict[tuple[str, str], dict[str, Any]]:
        """The metadata of the described owners of a page."""
        described = [owner for owner in page if owner.described]
        values = {
            "project_id": project_id,
            "kinds": [owner.kind for owner in described],
            "ids": [owner.id for owner in described],
        }
        rows = await fetch(self._single, statement("owners_metadata"), values)
        return {(row.kind, row.id): row.metadata for row in rows}

    async def named(self, project_id: ProjectId, kind: str, owner_id: str) -> bool:
        """Tell if an add ever named this owner, or if it is registered."""
        lane = select(lanes.c.id).where(
            lanes.c.project_id == project_id, lanes.c[KINDS[kind]] == owner_id
        )
        row = select(owners.c.id).where(
            owners.c.project_id == project_id, owners.c.kind == kind, owners.c.id == owner_id
        )
        return bool(await fetch_value(self._single, select(lane.exists() | row.exists())))

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
        await execute(self._single, again)
