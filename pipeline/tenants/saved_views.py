"""Saved views of the console: addresses with filters, by name, shared by the keys of a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, func, insert, select

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import saved_views
from pipeline.tenants.projects import keep

MOST_VIEWS = 50
FULL = f"A project has at most {MOST_VIEWS} saved views; delete one first."
NO_SUCH_VIEW = "The project has no such view."


@dataclass(frozen=True, slots=True)
class SavedView:
    """A page of the console with its query string."""

    id: UUID
    name: str
    path: str
    query: Mapping[str, str]


class SavedViews(LedgerStore):
    """Store of saved views."""

    async def of(self, project_id: ProjectId) -> Sequence[SavedView]:
        """The views of the project, by name."""
        names = ("id", "name", "path", "query")
        query = (
            select(*(saved_views.c[name] for name in names))
            .where(saved_views.c.project_id == project_id)
            .order_by(saved_views.c.name, saved_views.c.id)
        )
        rows = await fetch(self._engine, query.limit(MOST_VIEWS))
        return [SavedView(**row._asdict()) for row in rows]

    async def save(
        self, project_id: ProjectId, name: str, path: str, query: Mapping[str, str]
    ) -> UUID:
        """Save a view. Returns its id. Errors: Conflict if there are too many; ProjectGone."""
        own = saved_views.c.project_id == project_id
        values = {"project_id": project_id, "name": name, "path": path, "query": dict(query)}
        row = insert(saved_views).values(values).returning(saved_views.c.id)
        async with self._engine.begin() as connection:
            await keep(connection, project_id)
            if (await connection.scalar(select(func.count()).where(own)) or 0) >= MOST_VIEWS:
                raise Conflict(FULL)
            return UUID(str((await connection.execute(row)).scalar_one()))

    async def remove(self, project_id: ProjectId, view_id: UUID) -> None:
        """Delete a view. Errors: NotFound."""
        query = delete(saved_views).where(
            saved_views.c.project_id == project_id, saved_views.c.id == view_id
        )
        if not await execute(self._engine, query):
            raise NotFound(NO_SUCH_VIEW)
