"""Store of seals: switch a project's tamper evidence, seal its rows, and verify them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Select, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline import telemetry
from pipeline.domain.errors import Conflict
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.engine import is_locked
from pipeline.ledger.failures import is_out_of_reach
from pipeline.ledger.fetching import fetch
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import projects, seal_checkpoints, seal_projects
from pipeline.seals.chain import Fault
from pipeline.seals.checkpoints import is_checkpoint
from pipeline.seals.heads import ProjectHead, SealState, digest
from pipeline.seals.keys import SealKeys
from pipeline.seals.sealing import IDLE, Refused, Sealed, SealingBatch, Verified, write_head
from pipeline.seals.sql import statement
from pipeline.seals.verification import Verification, VerifiedPage

log = structlog.get_logger()

# Seconds that one project may take before it is the turn of the next.
TURN_S = 2.0
# Pause in seconds after a project's head has failed; maximum wait for a project's lock.
REFUSED_S, LOCK_S = 60.0, 5.0
MOST_CHECKPOINTS = 1_000
UNDER_WAY = "A verification of this project is under way: send the request again when it has ended."
FORGED = (
    "The seals of this project fail verification, so nothing may be sealed on top of them:"
    " `memlane verify` names the faults."
)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a whole check. `sealed`: number of seals; `waiting`: rows not sealed yet."""

    sealed: int
    waiting: int
    faults: Sequence[Fault]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A recorded head of a project. `valid`: this server signed it."""

    number: int
    counter: int
    lanes: int
    root: str
    sealed_until: datetime | None
    created_at: datetime
    valid: bool


class Seals(LedgerStore):
    """Seal rows and verify them. Without a key nothing is sealed or checked.

    `reading`: pool of verifications, which hold a connection for a page.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        keys: SealKeys,
        *,
        reading: AsyncEngine | None = None,
        checkpoint_every: timedelta = timedelta(minutes=5),
    ) -> None:
        """`checkpoint_every`: minimum time between two recorded heads of a project."""
        super().__init__(engine)
        self._snapshots = (reading or engine).execution_options(isolation_level="REPEATABLE READ")
        self.keys = keys
        self._checkpoint_every = checkpoint_every
        self._verified = Verified()
        self._cursors: dict[ProjectId, UUID] = {}
        self._refused: dict[ProjectId, float] = {}

    # Switching

    async def switch(self, project_id: ProjectId, *, on: bool) -> None:
        """Switch the tamper evidence of a project, and sign its new state.

        Errors: InvalidInput without a key; Conflict if the project's head was not signed here.
        """
        async with self._engine.begin() as connection:
            await connection.execute(
                update(projects)
                .where(projects.c.id == project_id)
                .values(tamper_evidence=on or None)
            )
            query = select(seal_projects).where(seal_projects.c.project_id == project_id)
            row = (await connection.execute(query.with_for_update())).one_or_none()
            if row is None and not on:
                return
            key_id = self.keys.current
            if row is None:
                new = insert(seal_projects).values(
                    project_id=project_id,
                    state=SealState.STARTING.value,
                    digest=digest({}),
                    rotated_to=key_id,
                )
                row = (await connection.execute(new.returning(seal_projects))).one()
                head = ProjectHead.of(row)
            else:
                head = ProjectHead.of(row)
                if not head.is_signed(self.keys):
                    raise Conflict(FORGED)
            if on is (head.state is not SealState.OFF) and head.counter:
                return
            state = SealState.STARTING if on else SealState.OFF
            changed = replace(head, state=state, since=None, sealed_until=None)
            await write_head(connection, changed.sign(self.keys))

    # Sealing

    async def seal(self) -> int:
        """Seal the new rows of all projects with tamper evidence. Returns the number of seals.

        Without a key it only measures how long they wait. Several processes may run it, and it may
        be stopped at any point. Each project has a turn of two seconds, so a large one delays no
        other.
        """
        values = {"key_id": self.keys.current if self.keys else None, "idle": IDLE}
        due = await fetch(self._engine, statement("due_projects"), values)
        telemetry.seals_oldest_seconds.set(max((row.age_s or 0.0 for row in due), default=0.0))
        if not self.keys:
            return 0
        waiting = deque(ProjectId(row.project_id) for row in due)
        number = 0
        while waiting:
            project_id = waiting.popleft()
            sealed = await self._turn(project_id)
            number += sealed.number
            if sealed.more:
                waiting.append(project_id)
        return number

    async def _turn(self, project_id: ProjectId) -> Sealed:
        """Seal batches of a project for two seconds. After a failure, let it wait for a minute.

        Errors: LedgerUnavailable if the ledger is out of reach.
        """
        until = time.monotonic() + TURN_S
        if self._refused.get(project_id, 0.0) > time.monotonic():
            return Sealed()
        number = 0
        while True:
            try:
                sealed = await self._batch(project_id)
            except Refused as reason:
                self._refused[project_id] = time.monotonic() + REFUSED_S
                telemetry.seals_refused.labels("project").inc()
                log.error(
                    "seal_refused", what="project", project_id=str(project_id), why=str(reason)
                )
                return Sealed(number)
            except DBAPIError as error:
                if is_out_of_reach(error):
                    raise
                self._refused[project_id] = time.monotonic() + REFUSED_S
                log.error("seal_failed", project_id=str(project_id), error=type(error).__name__)
                return Sealed(number)
            if sealed.recorded:  # after the commit: only what is stored
                log.info("seal_head", **sealed.recorded)
            number += sealed.number
            if not sealed.more or time.monotonic() > until:
                return Sealed(number, sealed.more)

    async def _batch(self, project_id: ProjectId) -> Sealed:
        """Seal one batch, unless another process has locked the project's head. Errors: Refused."""
        try:
            async with self._engine.begin() as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_S:.0f}s'"))
                batch = SealingBatch(
                    connection,
                    self.keys,
                    project_id,
                    verified=self._verified,
                    cursors=self._cursors,
                    checkpoint_every=self._checkpoint_every,
                )
                return await batch.run()
        except DBAPIError as error:
            if is_locked(error):  # an erasure, or another sweeper
                return Sealed()
            raise

    # Verification

    async def verify(self, project_id: ProjectId, cursor: str | None) -> VerifiedPage:
        """Check one page of a project.

        Errors: InvalidInput for an invalid cursor, or without a key for a project that has or had
        tamper evidence; Conflict while another page of the project is being checked.
        """
        async with self._snapshots.connect() as connection:
            locked = await connection.scalar(
                select(
                    func.pg_try_advisory_xact_lock(func.hashtextextended(f"verify:{project_id}", 0))
                )
            )
            if not locked:
                raise Conflict(UNDER_WAY)
            return await Verification(connection, self.keys, project_id).page(cursor)

    async def check(self, project_id: ProjectId) -> Check:
        """Check all pages of a project. Errors: as `verify`."""
        sealed, waiting, faults = 0, 0, list[Fault]()
        cursor: str | None = None
        while True:
            page = await self.verify(project_id, cursor)
            sealed, waiting = sealed + page.sealed, waiting + page.waiting
            faults.extend(page.faults)
            cursor = page.next
            if cursor is None:
                return Check(sealed, waiting, faults)

    async def checkpoints(self, project_id: ProjectId, *, after: int) -> Sequence[Checkpoint]:
        """Return recorded heads with numbers after `after`, oldest first, at most 1,000."""
        number = seal_checkpoints.c.number
        query = select(seal_checkpoints).where(number > after).order_by(number)
        return await self._checkpoints(project_id, query.limit(MOST_CHECKPOINTS))

    async def newest_checkpoints(
        self, project_id: ProjectId, *, before: int, limit: int
    ) -> Sequence[Checkpoint]:
        """Return recorded heads with numbers before `before`, newest first."""
        number = seal_checkpoints.c.number
        query = select(seal_checkpoints).where(number < before).order_by(number.desc())
        return await self._checkpoints(project_id, query.limit(limit))

    async def _checkpoints(self, project_id: ProjectId, query: Select[Any]) -> Sequence[Checkpoint]:
        """The rows of a query that are of this project, with the check of their signatures."""
        mine = query.where(seal_checkpoints.c.project_id == project_id)
        rows = await fetch(self._snapshots, mine)
        return [
            value_of(Checkpoint, row, root=row.root.hex(), valid=is_checkpoint(self.keys, row))
            for row in rows
        ]
