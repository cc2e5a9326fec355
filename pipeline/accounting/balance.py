"""The books: counts of events and memories, whose reads cost the same for any number of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Float, Select, Subquery, cast, delete, func, insert, select, text, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.accounting.sql import statement
from pipeline.domain.events import EventType, Status
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import book_entries, books, events

# Key of an advisory lock; no other lock uses it.
FOLD_LOCK = 0x626F6F6B
# Number of entries per transaction, about 50 ms of work.
FOLDED_AT_ONCE = 10_000
# Time since which an event waits for its end; the same expression as in ix_events_open.
WAITING_SINCE = func.coalesce(events.c.replayed_at, events.c.created_at)
SEARCH = "SEARCH"
OPEN = (Status.PENDING, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Totals:
    """Number of events in each state. `accepted` is counted independently of the others.

    `oldest_in_flight_s`: age in seconds of the oldest event that has not ended.
    """

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
        """Tell if no event was lost or counted twice."""
        ended = self.succeeded + self.failed + self.cancelled
        return self.accepted == ended + self.pending + self.running


class Balance(LedgerStore):
    """Read and fold the counts."""

    async def totals(self, project_id: ProjectId | None = None) -> Totals:
        """Return the counts of a project, or of the whole ledger, from one snapshot."""
        lines = _lines(project_id)
        query = select(lines.c.kind, func.sum(lines.c.amount)).group_by(lines.c.kind)
        async with self._single.connect() as connection:
            counts = {row[0]: int(row[1]) for row in await connection.execute(query)}
            in_flight = any(counts.get(status) for status in OPEN)
            age_s = await connection.scalar(_oldest(lines)) if in_flight else None
        return _totals(counts, age_s or 0.0)

    async def add_searches(self, searches: Mapping[UUID, int]) -> None:
        """Add to the number of searches of each project."""
        rows = [
            {"project_id": project_id, "kind": SEARCH, "amount": count}
            for project_id, count in searches.items()
        ]
        async with self._single.connect() as connection:
            await connection.execute(insert(book_entries), rows)

    async def fold(self) -> None:
        """Add up the entries into the books, in shares.

        Returns at once if another process does it.
        """
        while await self._fold_share() == FOLDED_AT_ONCE:
            pass

    async def _fold_share(self) -> int:
        async with self._engine.begin() as connection:
            ours = text(f"SELECT pg_try_advisory_xact_lock({FOLD_LOCK})")
            if not await connection.scalar(ours):
                return 0
            return await _fold(connection, FOLDED_AT_ONCE)


async def fold_all(connection: AsyncConnection) -> None:
    """Add up all entries into the books, as the last statement of the caller's transaction.

    Counts that are zero are deleted, and with them the ids of owners.
    """
    await connection.execute(text(f"SELECT pg_advisory_xact_lock({FOLD_LOCK})"))
    await _fold(connection, None)


async def _fold(connection: AsyncConnection, limit: int | None) -> int:
    moved = await _move(connection, limit)
    if moved:
        await _move(connection, limit)  # the numbers of owners, which the first move has changed
    return moved


async def _move(connection: AsyncConnection, limit: int | None) -> int:
    """Add entries to the books and delete counts of zero. Returns the number of entries."""
    moved = await connection.scalar(statement("fold_books"), {"limit": limit})
    await connection.execute(delete(books).where(books.c.amount == text("0")))
    return int(moved or 0)


def _lines(project_id: ProjectId | None) -> Subquery:
    """Select the counts of a project, or of all, not yet added up."""
    parts: list[Select[tuple[UUID, str, int]]] = [
        select(table.c.project_id, table.c.kind, table.c.amount).where(
            table.c.owner == text("''::text"),
            *([] if project_id is None else [table.c.project_id == project_id]),
        )
        for table in (books, book_entries)
    ]
    return union_all(*parts).subquery("lines")


def _oldest(lines: Subquery) -> Select[Any]:
    """Select the age in seconds of the oldest event in flight; reads one row per busy project."""
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


def _totals(counts: Mapping[str, int], oldest_s: float) -> Totals:
    """Build the totals from the counts by kind."""

    def of(kind: str) -> int:
        return counts.get(kind, 0)

    return Totals(
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
