"""Private runs: sessions that leave no memories behind.

temporary   its memories are found only by reads that name the run; at its end all of it is
erased, with a receipt
incognito   its adds are answered and not stored
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Row, and_, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import EventType
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.tables import lanes, private_runs
from pipeline.tenants.sql import statement

NO_SUCH_RUN = "This run is neither temporary nor incognito."
NOT_STORED = "Incognito: nothing was stored."
# Time after which another process may erase a run that one has claimed.
LEASE = timedelta(minutes=5)


class Privacy(StrEnum):
    """Kind of a private run."""

    TEMPORARY = "temporary"
    INCOGNITO = "incognito"


@dataclass(frozen=True, slots=True)
class PrivateRun:
    """A private run. `erasure_id`: the event that erases it at its end.

    `expires_at`: the time of the end; None if only a request ends it.
    """

    run_id: str
    privacy: Privacy
    erasure_id: UUID
    expires_at: datetime | None
    created_at: datetime


class PrivateRuns:
    """Store of the private runs."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def declare(
        self,
        project_id: ProjectId,
        run_id: str,
        privacy: Privacy,
        *,
        expires_at: datetime | None = None,
    ) -> PrivateRun:
        """Make a run private. A repeated call moves the end of a temporary run.

        Errors: Conflict if the run is of the other kind, or if events of it are stored already.
        """
        inserted = postgresql.insert(private_runs).values(
            project_id=project_id,
            run_id=run_id,
            privacy=privacy,
            expires_at=expires_at,
            erasure_id=uuid4(),
        )
        again = inserted.on_conflict_do_update(
            index_elements=["project_id", "run_id"],
            set_={"expires_at": expires_at},
            where=private_runs.c.privacy == privacy,
        ).returning(private_runs)
        async with self._engine.begin() as connection:
            known = await connection.scalar(
                select(private_runs.c.run_id).where(_this(project_id, run_id))
            )
            if known is None and await _has_events(connection, project_id, run_id):
                raise Conflict("Events of this run are stored already: begin another run.")
            row = (await connection.execute(again)).one_or_none()
        if row is None:
            raise Conflict("This run is private already, of the other kind.")
        return _run(row)

    async def get(self, project_id: ProjectId, run_id: str) -> PrivateRun:
        """One private run. Errors: NotFound."""
        query = select(private_runs).where(_this(project_id, run_id))
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise NotFound(NO_SUCH_RUN)
        return _run(row)

    async def is_incognito(self, scope: Scope) -> bool:
        """Tell if the adds of a scope are not stored."""
        if scope.run_id is None:
            return False
        query = select(private_runs.c.run_id).where(
            _this(scope.project_id, scope.run_id), private_runs.c.privacy == Privacy.INCOGNITO
        )
        async with self._engine.connect() as connection:
            return await connection.scalar(query) is not None

    async def record_incognito(self, project_id: ProjectId) -> UUID:
        """Record that an incognito add was answered. Returns the id of its event.

        The event is in the project's own lane, without content and without ids.
        """
        event_id, own = uuid4(), Scope(project_id)
        lane = {"id": own.lane_id, "project_id": project_id, "state": "IDLE"}
        values = {
            "project_id": project_id,
            "lane_id": own.lane_id,
            "event_id": event_id,
            "event_type": EventType.INCOGNITO,
            "note": NOT_STORED,
        }
        async with self._engine.begin() as connection:
            await connection.execute(postgresql.insert(lanes).values(lane).on_conflict_do_nothing())
            await lock_lanes(connection, lanes.c.id == own.lane_id)
            await connection.execute(statement("record_incognito"), values)
        return event_id

    async def claim_expired(self, *, limit: int) -> list[tuple[ProjectId, str]]:
        """Claim temporary runs whose time is over. Safe to run in several processes at once."""
        values = {"lease": LEASE, "limit": limit}
        async with self._engine.begin() as connection:
            rows = (await connection.execute(statement("claim_expired"), values)).all()
        return [(ProjectId(row.project_id), row.run_id) for row in rows]


def _this(project_id: ProjectId, run_id: str) -> ColumnElement[bool]:
    return and_(private_runs.c.project_id == project_id, private_runs.c.run_id == run_id)


async def _has_events(connection: AsyncConnection, project_id: ProjectId, run_id: str) -> bool:
    """Tell if an add to the run was accepted."""
    query = select(lanes.c.id).where(
        lanes.c.project_id == project_id, lanes.c.run_id == run_id, lanes.c.accepted_seq > 0
    )
    return await connection.scalar(query.limit(1)) is not None


def _run(row: Row[Any]) -> PrivateRun:
    return PrivateRun(
        row.run_id, Privacy(row.privacy), row.erasure_id, row.expires_at, row.created_at
    )
