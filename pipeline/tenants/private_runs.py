"""Private runs: sessions that leave no memories behind.

temporary   its memories are found only by reads that name the run; at its end all of it is
erased, with a receipt
incognito   its adds are answered and not stored
ended       either of them after its end: adds are refused, until it is declared again
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Function,
    Row,
    and_,
    case,
    func,
    insert,
    null,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict
from pipeline.domain.events import EventType, Status
from pipeline.domain.incognito import incognito_id
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import fetch, fetch_known, fetch_value
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import book_entries, lanes, private_runs

NO_SUCH_RUN = "This run is neither temporary nor incognito."
# Counts of one incognito add in the books: an event that was accepted and has SUCCEEDED.
COUNTS = (EventType.INCOGNITO.value, Status.SUCCEEDED.value, "NUMBER")


class Privacy(StrEnum):
    """Kind of a private run."""

    TEMPORARY = "temporary"
    INCOGNITO = "incognito"


# State of a private run after its end.
ENDED = "ended"


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


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a temporary run, and its place among all ends. `overdue`: the time since then."""

    project_id: ProjectId
    run_id: str
    expires_at: datetime
    digest: bytes
    overdue: timedelta


class PrivateRuns(LedgerStore):
    """Store of the private runs."""

    async def declare(
        self,
        project_id: ProjectId,
        run_id: str,
        privacy: Privacy,
        *,
        expires_at: datetime | None = None,
    ) -> PrivateRun:
        """Make a run private. A repeated call moves the end of a temporary run.

        A run that has ended begins again, as a new session with a new receipt. Errors: Conflict if
        the run is of the other kind, or if events of it are stored already.
        """
        named = run_id if privacy is Privacy.TEMPORARY else None
        inserted = postgresql.insert(private_runs).values(
            project_id=project_id,
            digest=_digest(project_id, run_id),
            run_id=named,
            privacy=privacy,
            expires_at=expires_at,
            erasure_id=uuid4(),
        )
        new = inserted.excluded
        ended = private_runs.c.privacy == ENDED
        again = inserted.on_conflict_do_update(
            index_elements=["project_id", "digest"],
            set_={
                **columns_of(new, "run_id", "privacy", "expires_at"),
                "ended_at": null(),
                "erasure_id": case((ended, new.erasure_id), else_=private_runs.c.erasure_id),
                "created_at": case((ended, func.now()), else_=private_runs.c.created_at),
            },
            where=or_(ended, private_runs.c.privacy == privacy),
        ).returning(private_runs)
        async with self._engine.begin() as connection:
            # The first add to the run takes the same lock, shared: see enter_private_run() in the
            # migrations. So it is stored before this, or knows of it.
            key = func.hashtextextended(func.encode(_digest(project_id, run_id), "hex"), 0)
            await connection.execute(select(func.pg_advisory_xact_lock(key)))
            known = await connection.scalar(
                select(private_runs.c.privacy).where(_this(project_id, run_id))
            )
            if known in (None, ENDED) and await _has_events(connection, project_id, run_id):
                raise Conflict("Events of this run are stored already: begin another run.")
            row = (await connection.execute(again)).one_or_none()
        if row is None:
            raise Conflict("This run is private already, of the other kind.")
        return _run(run_id, row)

    async def get(self, project_id: ProjectId, run_id: str) -> PrivateRun:
        """One private run. Errors: NotFound, also after its end."""
        query = select(private_runs).where(
            _this(project_id, run_id), private_runs.c.privacy != ENDED
        )
        return _run(run_id, await fetch_known(self._engine, query, missing=NO_SUCH_RUN))

    async def is_incognito(self, scope: Scope) -> bool:
        """Tell if the adds of a scope are not stored."""
        if scope.run_id is None:
            return False
        query = select(private_runs.c.digest).where(
            _this(scope.project_id, scope.run_id), private_runs.c.privacy == Privacy.INCOGNITO
        )
        return await fetch_value(self._engine, query) is not None

    async def count_incognito(self, project_id: ProjectId) -> UUID:
        """Count an incognito add in the books. Returns the id of its event, which is not stored."""
        counts = [{"project_id": project_id, "kind": kind, "amount": 1} for kind in COUNTS]
        async with self._engine.begin() as connection:
            now = await connection.scalar(select(func.now()))
            await connection.execute(insert(book_entries).values(counts))
        assert now is not None
        return incognito_id(project_id, now)

    async def expired(self, *, after: RunEnd | None = None, limit: int) -> list[RunEnd]:
        """Temporary runs whose time is over, the oldest end first. `after`: only those after it."""
        runs = private_runs.c
        place = (runs.expires_at, runs.project_id, runs.digest)
        overdue = (func.now() - runs.expires_at).label("overdue")
        query = select(*place, runs.run_id, overdue).where(runs.expires_at <= func.now())
        if after is not None:
            last = (after.expires_at, after.project_id, after.digest)
            query = query.where(tuple_(*place) > tuple_(*last))
        rows = await fetch(self._engine, query.order_by(*place).limit(limit))
        return [value_of(RunEnd, row, project_id=ProjectId(row.project_id)) for row in rows]


def _digest(project_id: ProjectId, run_id: str) -> Function[bytes]:
    return func.private_run_digest(project_id, run_id)


def _this(project_id: ProjectId, run_id: str) -> ColumnElement[bool]:
    return and_(
        private_runs.c.project_id == project_id,
        private_runs.c.digest == _digest(project_id, run_id),
    )


async def _has_events(connection: AsyncConnection, project_id: ProjectId, run_id: str) -> bool:
    """Tell if an add to the run was accepted."""
    query = select(lanes.c.id).where(
        lanes.c.project_id == project_id, lanes.c.run_id == run_id, lanes.c.accepted_seq > 0
    )
    return await connection.scalar(query.limit(1)) is not None


def _run(run_id: str, row: Row[Any]) -> PrivateRun:
    return PrivateRun(run_id, Privacy(row.privacy), row.erasure_id, row.expires_at, row.created_at)
