"""Organizations and their projects. A project is a tenant: no other project sees its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import and_, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.decay import Decay
from pipeline.domain.errors import ProjectGone
from pipeline.domain.lanes import GATHERING
from pipeline.domain.tenants import Access, OrganizationId, ProjectId
from pipeline.ledger.fetching import fetch, fetch_known, fetch_value
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import api_keys, lanes, organizations, projects, queue_samples
from pipeline.tenants.secret import Secret

NO_SUCH_PROJECT = "Project not found."


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization: a group of projects. The operator's organization has `operator` set."""

    id: OrganizationId
    name: str
    operator: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Project:
    """A project's ids, name and search settings, as an API key carries them."""

    id: ProjectId
    organization_id: OrganizationId
    name: str
    decay: Decay | None = None
    default_cut: bool = True
    allowed_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project with all its configurable fields."""

    id: ProjectId
    organization_id: OrganizationId
    name: str
    description: str | None
    custom_instructions: str | None
    agent_custom_instructions: str | None
    includes: str | None
    excludes: str | None
    custom_categories: Mapping[str, str] | None
    settings: Mapping[str, Any]
    mode: str | None
    budget: Mapping[str, Any] | None
    curator: Mapping[str, Any] | None
    gather: Mapping[str, Any] | None
    graph_types: Mapping[str, Any] | None
    custom_attributes: Mapping[str, str] | None
    enable_graph: bool | None
    tamper_evidence: bool | None
    created_at: datetime
    updated_at: datetime


class Projects(LedgerStore):
    """Create, read and configure projects."""

    async def any(self) -> bool:
        """Tell if the database has a project at all."""
        return await fetch_value(self._engine, select(projects.c.id).limit(1)) is not None

    async def create(self, name: str, *, operator: bool = False) -> tuple[Project, str]:
        """Create an organization with its first project and return its admin key.

        The key is returned in clear only this once.
        """
        organization_id, secret = OrganizationId(uuid4()), Secret()
        key = {"name": "first", "scope": Access.ADMIN}
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(organizations).values(id=organization_id, name=name, operator=operator)
            )
            project = await _add(connection, organization_id, name)
            await connection.execute(
                insert(api_keys).values(
                    digest=secret.digest, prefix=secret.prefix, project_id=project.id, **key
                )
            )
        return project, secret.key

    async def organization(self, organization_id: OrganizationId) -> Organization:
        """Return an existing organization by its id."""
        query = select(organizations).where(organizations.c.id == organization_id)
        [row] = await fetch(self._engine, query)
        return Organization(**row._asdict())

    async def add(
        self, organization_id: OrganizationId, name: str, description: str | None = None
    ) -> Project:
        """Create another project of an organization. It has no API key yet."""
        async with self._engine.begin() as connection:
            return await _add(connection, organization_id, name, description)

    async def allow(self, origin: str) -> bool:
        """Tell if any project allows scripts of this origin to call the API."""
        allowing = select(projects.c.id).where(
            text("settings ? 'allowed_origins'"),
            text("settings -> 'allowed_origins' ? CAST(:origin AS text)"),
        )
        row = await fetch_value(self._engine, allowing.limit(1), {"origin": origin})
        return row is not None

    async def of(self, organization_id: OrganizationId, project_id: UUID) -> Project:
        """Return the organization's project with an id that a client sent. Errors: NotFound."""
        query = select(projects.c.id, projects.c.organization_id, projects.c.name).where(
            projects.c.organization_id == organization_id, projects.c.id == project_id
        )
        row = await fetch_known(self._engine, query, missing=NO_SUCH_PROJECT)
        return Project(ProjectId(row.id), OrganizationId(row.organization_id), row.name)

    async def views(
        self, organization_id: OrganizationId, only: ProjectId | None = None
    ) -> Sequence[ProjectView]:
        """Return the organization's projects, oldest first; with `only`, that one alone."""
        query = select(*(projects.c[field.name] for field in fields(ProjectView))).where(
            projects.c.organization_id == organization_id,
            *([projects.c.id == only] if only else []),
        )
        rows = await fetch(self._engine, query.order_by(projects.c.created_at, projects.c.id))
        return [ProjectView(**row._asdict()) for row in rows]

    async def change(
        self, project_id: ProjectId, values: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        """Update columns of a project and merge `settings` into its stored settings.

        With `gather`, turns that wait for others are considered again at once.
        """
        query = update(projects).where(projects.c.id == project_id)
        merged = projects.c.settings.op("||")(dict(settings))
        async with self._engine.begin() as connection:
            await connection.execute(
                query.values({**values, "settings": merged, "updated_at": func.now()})
            )
            if "gather" in values:
                gathering = and_(
                    lanes.c.project_id == project_id,
                    lanes.c.due_at.is_not(None),
                    lanes.c.state == "WAITING",
                    lanes.c.wait_code == GATHERING,
                )
                ids = [row.id for row in await lock_lanes(connection, gathering)]
                due = update(lanes).where(among(lanes.c.id, ids)).values(due_at=func.now())
                await connection.execute(due)


async def keep(connection: AsyncConnection, project_id: ProjectId) -> None:
    """Lock the project against deletion. Taken before any lane lock. Errors: ProjectGone."""
    query = select(projects.c.id).where(projects.c.id == project_id)
    if await connection.scalar(query.with_for_update(read=True, key_share=True)) is None:
        raise ProjectGone("This API key is not valid: its project is deleted.")


async def _add(
    connection: AsyncConnection,
    organization_id: OrganizationId,
    name: str,
    description: str | None = None,
) -> Project:
    """Insert a project, with the first sample of its charts."""
    project = Project(ProjectId(uuid4()), organization_id, name)
    values = {"id": project.id, "organization_id": organization_id, "name": name}
    await connection.execute(insert(projects).values(**values, description=description))
    # The series of its charts begins with nothing.
    counts = ("accepted", "succeeded", "failed", "searches", "memories", "pending", "running")
    before = func.date_trunc("minute", func.now()) - timedelta(minutes=1)
    start = dict.fromkeys((*counts, "ready_s", "waiting_s"), 0)
    await connection.execute(
        insert(queue_samples).values(project_id=project.id, minute=before, **start)
    )
    return project
