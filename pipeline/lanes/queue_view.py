"""The queue of a project as people see it: the age of its oldest events, and its rate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pipeline.domain.tenants import ProjectId
from pipeline.lanes.sql import statement
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import LedgerStore


@dataclass(frozen=True, slots=True)
class OldestEvent:
    """The oldest open event of the lanes that wait, or of those that do not.

    `event_id` is None in a temporary run. `code`, `cause` and `until` say why and until when a lane
    waits.
    """

    age_s: float
    events: int
    event_id: UUID | None
    stage: str
    code: str | None
    cause: str | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class QueueAges:
    """The oldest event that can be processed, and the oldest one whose lane waits."""

    dispatchable: OldestEvent | None
    waiting: OldestEvent | None


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Number of events accepted in one minute, and how many of them have failed."""

    minute: datetime
    accepted: int
    failed: int


class QueueView(LedgerStore):
    """Reads of the queue. Their work is bounded: see the SQL files."""

    async def ages(self, project_id: ProjectId) -> QueueAges:
        """The oldest open events, among the 5,000 oldest ones of the project."""
        rows = await self._direct.rows(statement("oldest_open"), {"project_id": project_id})
        oldest = {
            row.waits: value_of(
                OldestEvent,
                row,
                age_s=float(row.age_s),
                code=row.wait_code,
                cause=row.wait_cause,
                until=row.due_at,
            )
            for row in rows
        }
        return QueueAges(oldest.get(False), oldest.get(True))

    async def dispatchable_s(self) -> int:
        """Age in seconds of the oldest event of all projects that waits for a worker; 0: none."""
        [row] = await self._direct.rows(statement("dispatchable_age"), {})
        return int(row.seconds)

    async def waiting_s(self) -> dict[str, int]:
        """Age in seconds of the oldest waiting event of all projects, by the code of its wait."""
        rows = await self._direct.rows(statement("waiting_ages"), {})
        return {row.reason: row.seconds for row in rows if row.reason}

    async def rate(self, project_id: ProjectId) -> list[MinuteCount]:
        """The last hour by minute, oldest first; of the newest 20,000 events."""
        rows = await self._direct.rows(statement("by_minute"), {"project_id": project_id})
        return [MinuteCount(row.minute, row.accepted, row.failed) for row in rows]
