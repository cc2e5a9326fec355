"""Seals of rows: a hash chain for each lane, whose head is signed.

    link(n) = SHA-256(link(n-1), n, kind, row, digest(n))
    signature = HMAC(key, lane, n, link(n))

The sweeper seals new rows, after their commit. An edit, a removal or an insertion in the
database changes a digest, or leaves a seal without a row or a row without a seal. The key is not in
the database, so access to the database alone is not enough to sign another head. A row that is
inserted within WINDOW of its own date is sealed like any other.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import lanes, projects, seal_heads, seals
from pipeline.seals.sql import statement

# Longest time between the start of a transaction, which dates its rows, and its commit.
WINDOW = timedelta(minutes=10)
# Number of rows sealed in one transaction, and of faults that a check names.
AT_ONCE, MOST_FAULTS = 2_000, 100


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that differs from its seal. `problem`: edited, removed, inserted, or chain or head for
    a seal that does not fit the chain.

    `kind` and `row_id` name the row: an event, a line of its receipt, or a version of a memory.
    """

    lane_id: UUID
    problem: str
    kind: str
    row_id: UUID | None = None
    row_no: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check. `sealed`: number of seals; `waiting`: rows that are not sealed yet."""

    sealed: int
    waiting: int
    faults: Sequence[Fault]


class Seals:
    """Store of seals. Without a `key` nothing is sealed or checked."""

    def __init__(self, engine: AsyncEngine, key: bytes | None) -> None:
        self._engine = engine
        self._key = key

    def require_key(self) -> bytes:
        """The key. Errors: InvalidInput if there is none."""
        if self._key is None:
            raise InvalidInput("Tamper evidence needs a key: set MEMLANE_SEAL_KEY on the server.")
        return self._key

    async def seal(self) -> int:
        """Seal the new rows of all projects with tamper evidence. Returns the number of seals.

        Several processes may run it, and it may be stopped at any point: a lane's seals and its
        head are one commit, under the head's lock.
        """
        if self._key is None:
            return 0
        number = 0
        query = select(projects.c.id, projects.c.sealed_until, func.now().label("begun"))
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.where(projects.c.tamper_evidence))).all()
        for row in rows:
            since = row.sealed_until and row.sealed_until - WINDOW
            values = {"project_id": row.id, "since": since}
            async with self._engine.connect() as connection:
                due = (await connection.scalars(statement("due"), values)).all()
            for lane_id in due:
                while sealed := await self._seal_lane(row.id, lane_id, since):
                    number += sealed
            until = update(projects).where(projects.c.id == row.id, projects.c.tamper_evidence)
            async with self._engine.begin() as connection:
                await connection.execute(until.values(sealed_until=row.begun))
        return number

    async def check(self, project_id: ProjectId) -> Check:
        """Compare a project's rows with their seals. Errors: InvalidInput without a key."""
        key = self.require_key()
        mine = lanes.c.project_id == project_id
        until = select(projects.c.sealed_until).where(projects.c.id == project_id)
        async with self._engine.connect() as connection:
            sealed_until = await connection.scalar(until)
            ids = (await connection.scalars(select(lanes.c.id).where(mine))).all()
            checks = [
                await _check_lane(connection, project_id, lane_id, sealed_until, key)
                for lane_id in sorted(ids)
            ]
        return Check(
            sum(check.sealed for check in checks),
            sum(check.waiting for check in checks),
            [fault for check in checks for fault in check.faults][:MOST_FAULTS],
        )

    async def _seal_lane(self, project_id: ProjectId, lane_id: UUID, since: datetime | None) -> int:
        """Append seals to a lane's chain, in one transaction. Returns their number."""
        row = {"lane_id": lane_id, "project_id": project_id}
        async with self._engine.begin() as connection:
            await connection.execute(
                postgresql.insert(seal_heads).values(row).on_conflict_do_nothing()
            )
            query = select(seal_heads).where(seal_heads.c.lane_id == lane_id).with_for_update()
            head = (await connection.execute(query)).one()
            values = {"lane_id": lane_id, "since": None if head.reopened else since}
            new = (
                await connection.execute(statement("unsealed"), values | {"limit": AT_ONCE})
            ).all()
            erased = await connection.execute(statement("erasures"), {"lane_id": lane_id})
            number, link = head.number, head.link
            appended = []
            for seal in [*erased.all(), *new]:
                number += 1
                link = next_link(link, number, seal)
                appended.append(row | seal._asdict() | {"number": number, "link": link})
            if appended:
                await connection.execute(insert(seals), appended)
            signed = signature(self.require_key(), lane_id, number, link)
            last = {"number": number, "link": link, "signature": signed}
            done = {"reopened": len(new) == AT_ONCE, "sealed_at": func.now()}
            await connection.execute(
                update(seal_heads).where(seal_heads.c.lane_id == lane_id).values(last | done)
            )
        return len(appended)


def next_link(link: bytes, number: int, seal: Any) -> bytes:
    """The link of the seal with this number."""
    place = f"{number}:{seal.kind}:{seal.row_id}:{seal.row_no}:".encode()
    return hashlib.sha256(link + place + seal.digest).digest()


def signature(key: bytes, lane_id: UUID, number: int, link: bytes) -> bytes:
    """The signature of a lane's head."""
    return hmac.digest(key, f"{lane_id}:{number}:".encode() + link, "sha256")


async def _check_lane(
    connection: AsyncConnection,
    project_id: ProjectId,
    lane_id: UUID,
    sealed_until: datetime | None,
    key: bytes,
) -> Check:
    """Compare a lane's rows with its chain."""
    rows = (await connection.execute(statement("check_seals"), {"lane_id": lane_id})).all()
    query = select(seal_heads).where(seal_heads.c.lane_id == lane_id)
    head = (await connection.execute(query)).one_or_none()
    known = {row.row_id for row in rows if row.kind == "erasure"}
    if any(row.erased_by and row.erased_by not in known for row in rows):
        mine = {"project_id": project_id}
        known |= set((await connection.scalars(statement("pending_erasures"), mine)).all())
    faults = _faults_of_rows(lane_id, rows, known) + _faults_of_chain(lane_id, rows, head, key)
    late_before = None if head is not None and head.reopened else sealed_until
    values = {"lane_id": lane_id, "since": late_before and late_before - WINDOW}
    new = (await connection.execute(statement("unsealed_late"), values | {"limit": AT_ONCE})).all()
    late = [row for row in new if row.late]
    faults += [Fault(lane_id, "inserted", row.kind, row.row_id, row.row_no) for row in late]
    return Check(len(rows), len(new) - len(late), faults)


def _faults_of_rows(lane_id: UUID, rows: Sequence[Row[Any]], erasures: set[UUID]) -> list[Fault]:
    """The rows that differ from their seals. `erasures`: those that may have deleted rows."""
    faults = []
    for row in rows:
        problem = row.state
        if problem == "erased" and row.erased_by not in erasures:
            problem = "removed"
        if problem in ("edited", "removed"):
            faults.append(Fault(lane_id, problem, row.kind, row.row_id, row.row_no))
    return faults


def _faults_of_chain(
    lane_id: UUID, rows: Sequence[Row[Any]], head: Row[Any] | None, key: bytes
) -> list[Fault]:
    """The first seal that does not fit the chain, or the head if it is not that of the chain."""
    link = b""
    for number, row in enumerate(rows, start=1):
        link = next_link(link, number, row)
        if (row.number, row.link) != (number, link):
            return [Fault(lane_id, "chain", row.kind, row.row_id, row.row_no)]
    if head is None:
        return [Fault(lane_id, "head", "seal")] if rows else []
    if not head.number and not rows:
        return []
    signed = hmac.compare_digest(head.signature, signature(key, lane_id, len(rows), link))
    fits = (head.number, head.link) == (len(rows), link)
    return [] if fits and signed else [Fault(lane_id, "head", "seal")]
