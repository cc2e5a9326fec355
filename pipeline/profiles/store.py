"""Store of profiles: settings, fields, due generations and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import cast, func, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from pipeline.domain.errors import NotFound
from pipeline.domain.events import Status
from pipeline.domain.profiles import GenerationJob, Profile, ProfileField, ProfileSettings
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch, fetch_row, fetch_value
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import lanes, profile_jobs, profiles, projects
from pipeline.profiles.sql import statement

NO_SUCH_JOB = "Profile job not found."


@dataclass(frozen=True, slots=True)
class DueProfile:
    """A profile to generate. `changes`: number of changes at the time of the claim."""

    id: UUID
    project_id: ProjectId
    user_id: str
    changes: int
    settings: ProfileSettings


class Profiles(LedgerStore):
    """Store of profiles."""

    async def settings(self, project_id: ProjectId) -> ProfileSettings:
        """Settings of a project; disabled by default."""
        query = select(projects.c.profile_settings).where(projects.c.id == project_id)
        return _settings(await fetch_value(self._single, query))

    async def change(self, project_id: ProjectId, values: Mapping[str, Any]) -> ProfileSettings:
        """Change some settings of a project, and return all of them."""
        before = func.coalesce(projects.c.profile_settings, cast({}, JSONB))
        query = (
            update(projects)
            .where(projects.c.id == project_id)
            .values(profile_settings=before.op("||")(cast(dict(values), JSONB)))
            .returning(projects.c.profile_settings)
        )
        return _settings(await fetch_value(self._single, query))

    async def known(self, project_id: ProjectId, user_id: str) -> bool:
        """Tell if the project has turns or memories of a user."""
        query = select(lanes.c.id).where(
            lanes.c.project_id == project_id, lanes.c.user_id == user_id
        )
        return await fetch_value(self._single, query.limit(1)) is not None

    async def changes(self, project_id: ProjectId, user_id: str) -> int:
        """Number of changes of a user's memories so far. To be read before the memories."""
        query = select(profiles.c.changes).where(
            profiles.c.project_id == project_id, profiles.c.user_id == user_id
        )
        return await fetch_value(self._single, query) or 0

    async def claim_due(self, *, pause_s: float) -> DueProfile | None:
        """Take one profile whose first change is older than the pause, for as long as the pause."""
        values = {"pause": timedelta(seconds=pause_s)}
        row = await fetch_row(self._single, statement("claim_due"), values)
        if row is None:
            return None
        settings = _settings(row.profile_settings)
        return DueProfile(row.id, ProjectId(row.project_id), row.user_id, row.changes, settings)

    async def accepted(
        self, project_id: ProjectId, user_id: str, event_id: UUID, *, changes: int | None = None
    ) -> None:
        """Note the newest generation. `changes`: number of changes that it was accepted for."""
        values = {"project_id": project_id, "user_id": user_id, "event_id": event_id}
        await execute(self._single, statement("accepted"), {**values, "changes": changes})

    async def get(
        self, project_id: ProjectId, user_id: str, *, as_of: datetime | None = None
    ) -> Profile:
        """A user's profile; an empty one if there is none. `as_of`: its values at this time."""
        of_user = {"project_id": project_id, "user_id": user_id}
        fields = statement("read_fields") if as_of is None else statement("read_fields_at")
        async with self._single.connect() as connection:
            row = (await connection.execute(statement("read_profile"), of_user)).one_or_none()
            if row is None:
                return Profile()
            rows = (await connection.execute(fields, of_user | {"as_of": as_of})).all()
        return value_of(
            Profile,
            row,
            fields=[value_of(ProfileField, field) for field in rows],
            due=row.due_at is not None,
            status=Status(row.status) if row.status else None,
        )

    async def filled_by(
        self, project_id: ProjectId, memory_ids: Sequence[UUID]
    ) -> dict[UUID, list[str]]:
        """Names of the current fields that these memories state, by memory."""
        values = {"project_id": project_id, "memory_ids": list(memory_ids)}
        rows = await fetch(self._single, statement("filled_by"), values)
        return {row.memory_id: row.names for row in rows}

    async def add_job(
        self, project_id: ProjectId, job_id: UUID, operation: str, event_ids: Sequence[UUID]
    ) -> None:
        """Store a job. One that is stored already stays as it is."""
        query = insert(profile_jobs).values(
            id=job_id, project_id=project_id, operation=operation, event_ids=list(event_ids)
        )
        await execute(self._single, query.on_conflict_do_nothing())

    async def last_job(self, project_id: ProjectId, operation: str) -> GenerationJob | None:
        """The newest job of an operation; None if there is none."""
        query = (
            select(profile_jobs.c.id)
            .where(profile_jobs.c.project_id == project_id, profile_jobs.c.operation == operation)
            .order_by(profile_jobs.c.created_at.desc())
            .limit(1)
        )
        job_id = await fetch_value(self._single, query)
        return None if job_id is None else await self.job(project_id, job_id)

    async def job(self, project_id: ProjectId, job_id: UUID) -> GenerationJob:
        """A job with the states of its events. Errors: NotFound."""
        values = {"project_id": project_id, "job_id": job_id}
        row = await fetch_row(self._single, statement("read_job"), values)
        if row is None:
            raise NotFound(NO_SUCH_JOB)
        # An event that was deleted with its project is not read.
        statuses = [Status(status or Status.CANCELLED) for status in row.statuses]
        return GenerationJob(job_id, row.operation, row.event_ids, row.users, statuses)


def _settings(row: Mapping[str, Any] | None) -> ProfileSettings:
    return ProfileSettings(**(row or {}))
