"""The books: counts of events and memories that cost the same however many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Float, Select, Subquery, cast, delete, func, insert, select, text, union_all
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.accounting.sql import statement
from pipeline.domain.events import EventType, Status
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import book_entries, books, events

# Any constant that no other advisory lock uses.
FOLD_LOCK = 0x626F6F6B
# Some 50 ms of work; the rest is due at the next call.
FOLDED_AT_ONCE = 10_000
# Since when an event has been waiting for its end, as ix_events_open has it.
WAITING_SINCE = func.coalesce(events.c.replayed_at, events.c.created_at)
SEARCH = "SEARCH"
OPEN = (Status.PENDING, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Accounts:
    """Number of events in each state. `accepted` is counted apart from the others."""

    memories: int
    adds: int
    accepted: int
    succeeded: int
    failed: int
    cancelled: int
    pending: int
    running: int
    oldest_in_flight_s: float
    searches: int = 0

    @property
    def balanced(self) -> bool:
        """Nothing was lost and nothing came twice."""
        ended = self.succeeded + self.failed + self.cancelled
        return self.accepted == ended + self.pending + self.running


class Books:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def accounts(self, project_id: ProjectId | None = None) -> Accounts:
        """The books of a project, or of the whole ledger, at one instant."""
        lines = _lines(project_id)
        query = select(lines.c.kind, func.sum(lines.c.amount)).group_by(lines.c.kind)
        async with self._single.connect() as connection:
            counts = {row[0]: int(row[1]) for row in await connection.execute(query)}
            age_s = await connection.scalar(_oldest(lines)) if _in_flight(counts) else None
        return _accounts(counts, age_s or 0.0)

    async def owners(self, project_id: ProjectId) -> dict[str, int]:
        """Number of users, agents, apps and runs that have memories, by kind."""
        parts = [
            select(table.c.kind, table.c.owner, table.c.amount).where(
                table.c.project_id == project_id, table.c.owner != ""
            )
            for table in (books, book_entries)
        ]
        line = union_all(*parts).subquery("line")
        owner = (
            select(line.c.kind)
            .group_by(line.c.kind, line.c.owner)
            .having(func.sum(line.c.amount) > 0)
            .subquery("owner")
        )
        query = select(owner.c.kind, func.count()).group_by(owner.c.kind)
        async with self._single.connect() as connection:
            return {row[0]: row[1] for row in await connection.execute(query)}

    async def add_searches(self, searches: Mapping[UUID, int]) -> None:
        rows = [
            {"project_id": project_id, "kind": SEARCH, "amount": count}
            for project_id, count in searches.items()
        ]
        async with self._single.connect() as connection:
            await connection.execute(insert(book_entries), rows)

    async def fold(self) -> None:
        """Move the entries into the books, a share at a time; not while another process does."""
        while await self._fold_share() == FOLDED_AT_ONCE:
            pass

    async def _fold_share(self) -> int:
        async with self._engine.begin() as connection:
            ours = text(f"SELECT pg_try_advisory_xact_lock({FOLD_LOCK})")
            if not await connection.scalar(ours):
                return 0
            return await _fold(connection, FOLDED_AT_ONCE)


async def fold_all(connection: AsyncConnection) -> None:
    """Move all entries into the books, inside the caller's transaction, as its last statement:
    counts that came to zero go, and with them the ids of owners.
    """
    await connection.execute(text(f"SELECT pg_advisory_xact_lock({FOLD_LOCK})"))
    await _fold(connection, None)


async def _fold(connection: AsyncConnection, limit: int | None) -> int:
    moved = await connection.scalar(statement("fold_books"), {"limit": limit})
    await connection.execute(delete(books).where(books.c.amount == text("0")))
    return int(moved or 0)


def _lines(project_id: ProjectId | None) -> Subquery:
    """The counts of a project, or of all, still apart."""
    parts: list[Select[tuple[UUID, str, int]]] = [
        select(table.c.project_id, table.c.kind, table.c.amount).where(
            table.c.owner == text("''::text"),
            *([] if project_id is None else [table.c.project_id == project_id]),
        )
        for table in (books, book_entries)
    ]
    return union_all(*parts).subquery("lines")


def _oldest(lines: Subquery) -> Select[Any]:
    """The age in seconds of the oldest event in flight, looked up project by project."""
    busy = (
        select(lines.c.project_id)
        .where(lines.c.kind.in_(OPEN))
        .group_by(lines.c.project_id)
        .having(func.sum(lines.c.amount) > 0)
        .subquery("busy")
    )
    first = (
        select(WAITING_SINCE.label("since"))
        .where(events.c.project_id == busy.c.project_id, events.c.completed_at.is_(None))
        .order_by(WAITING_SINCE)
        .limit(1)
        .lateral("first")
    )
    age = func.extract("epoch", func.now() - func.min(first.c.since))
    return select(cast(func.greatest(0, age), Float)).select_from(busy.join(first, text("true")))


def _in_flight(counts: Mapping[str, int]) -> int:
    return sum(counts.get(status, 0) for status in OPEN)


def _accounts(counts: Mapping[str, int], oldest_s: float) -> Accounts:
    def of(kind: str) -> int:
        return counts.get(kind, 0)

    return Accounts(
        memories=of("MEMORY"),
        adds=of(EventType.ADD),
        accepted=of("NUMBER") - of("REPLAY"),
        succeeded=of(Status.SUCCEEDED),
        failed=of(Status.FAILED),
        cancelled=of(Status.CANCELLED),
        pending=of(Status.PENDING),
        running=of(Status.RUNNING),
        oldest_in_flight_s=oldest_s,
        searches=of(SEARCH),
    )
