"""Leases: a running lane belongs to its worker until its lease ends; heartbeats renew it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.lanes import Hold
from pipeline.lanes.sql import statement
from pipeline.ledger.fair_pool import first_in_line
from pipeline.ledger.store import LedgerStore

# Number of heartbeats per lease: two may be late or lost.
BEATS = 3


def session_name(owner: UUID, process: str) -> str:
    """Application name of a worker's connections. If no session has it, the worker is dead."""
    return f"memlane {owner} {process}"


class LaneLeases(LedgerStore):
    """Store of leases. `lease`: time until the lane of a silent worker is taken over."""

    def __init__(self, engine: AsyncEngine, *, lease: timedelta) -> None:
        super().__init__(engine)
        self._lease = lease

    async def renew(self, holds: Sequence[Hold]) -> set[Hold]:
        """Extend these leases. Returns the extended ones; the others are lost or locked.

        It gets the next free connection: behind the statements of a hundred stages the beat is
        late, the lanes are lost, and their stages run again.
        """
        values = {
            "lease": self._lease,
            "lane_ids": [lane_id for lane_id, _, _ in holds],
            "fences": [fence for _, fence, _ in holds],
            "owners": [owner for _, _, owner in holds],
        }
        with first_in_line():
            rows = await self._direct.rows(statement("renew"), values)
        return {(row.id, row.fence, row.owner) for row in rows}
