"""Lanes that are due: an expired lease, a lost hint, or the end of a wait.

RUNNING | WAITING ──sweep──► QUEUED      a lane that is QUEUED already gets a new hint
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import FailureCode, StageName
from pipeline.domain.lanes import Hint, LaneClass
from pipeline.domain.tenants import ProjectId
from pipeline.lanes.leases import BEATS
from pipeline.lanes.sql import statement
from pipeline.ledger.engine import behind_pooler
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.store import WakingStore


@dataclass(frozen=True, slots=True)
class Swept:
    """A lane that a sweep has queued, and its state before."""

    hint: Hint
    project_id: ProjectId
    was: str


class DueLanes(WakingStore):
    """Store of the sweeper. `lease` and `grace`: as in Lanes."""

    def __init__(self, engine: AsyncEngine, *, lease: timedelta, grace: timedelta) -> None:
        super().__init__(engine, grace=grace)
        self._lease = lease

    async def doubt_hints(self, *, sent_before: datetime, patience_s: float, limit: int) -> int:
        """Make lanes due that were queued before this time, even for a sweep with this patience.

        The broker may have lost their hints. Returns their number, at most `limit`.
        """
        values = {
            "sent_before": sent_before,
            "patience": timedelta(seconds=patience_s),
            "grace": self._grace,
            "limit": limit,
        }
        return await execute(self._single, statement("mark_hints_lost"), values)

    async def release(self, code: FailureCode, *, limit: int) -> int:
        """Make lanes with this wait code due now. Returns their number."""
        values = {"code": code, "limit": limit}
        return await execute(self._single, statement("resume_waiting"), values)

    async def sweep(
        self,
        *,
        limit: int,
        patient: Collection[LaneClass] = (),
        patience_s: float = 0.0,
        low_patience_s: float = 0.0,
    ) -> list[Swept]:
        """Queue the lanes that are due. Safe to run in any number of processes at once.

        A worker's lanes are due when their leases have ended, or earlier if the worker is dead (see
        `session_name`; not through a connection pooler, which has sessions of its own). QUEUED
        lanes of `patient` classes are queued again only when `patience_s` overdue, or
        `low_patience_s` if their events have low priority.
        """
        rows = await fetch(
            self._single,
            statement("sweep"),
            {
                "limit": limit,
                "patient": [project_id for project_id, low in patient if not low],
                "patient_low": [project_id for project_id, low in patient if low],
                "patience": timedelta(seconds=patience_s),
                "low_patience": timedelta(seconds=low_patience_s),
                "grace": self._grace,
                "lease": self._lease,
                # A lease whose heartbeat is on time has more time left than this.
                "late": self._lease * (1 - 1.2 / BEATS),
                "stages": list(StageName),
                "sessions": not behind_pooler(self._single),
            },
        )
        return [
            Swept(Hint(r.lane_id, r.fence, StageName(r.stage), low=r.low), r.project_id, r.was)
            for r in rows
        ]
