"""Cancel an event before it has an effect.

    PENDING ──cancel──► CANCELLED ──replay──► PENDING, at the end of the lane
    RUNNING ──cancel──►     (until apply has committed)

The replay of a cancelled event: see pipeline/events/dead_letters.
"""

from __future__ import annotations

from uuid import UUID

from pipeline.domain.errors import Conflict
from pipeline.domain.events import StageName, Status
from pipeline.domain.lanes import Hint
from pipeline.domain.tenants import ProjectId
from pipeline.events.locking import is_event, lock_lanes_of
from pipeline.events.sql import statement
from pipeline.ledger.store import WakingStore
from pipeline.ledger.tables import turn_vectors
from pipeline.turns.vectors import mark_turns_stale


class Cancellation(WakingStore):
    """Cancel events."""

    async def cancel(self, project_id: ProjectId, event_id: UUID) -> tuple[bool, Hint | None]:
        """End an event as CANCELLED: it has had no effect and will have none.

        Returns False if it was already cancelled, and the hint for the lane if it restarts without
        it. Errors: NotFound; Conflict if it has had its effect or has ended.
        """
        async with self._engine.begin() as connection:
            await lock_lanes_of(connection, is_event(project_id, event_id))
            values = {"event_id": event_id, "grace": self._grace}
            row = (await connection.execute(statement("cancel"), values)).one()
            if row.taken:
                await mark_turns_stale(connection, turn_vectors.c.event_id == event_id)
        if not row.taken and row.status != Status.CANCELLED:
            raise Conflict(_too_late(Status(row.status)))
        restarts = row.fence is not None
        hint = Hint(row.lane_id, row.fence, StageName.EXTRACT) if restarts else None
        return row.taken, hint


def _too_late(status: Status) -> str:
    if status in (Status.PENDING, Status.RUNNING):
        return "Too late to cancel: its memories are stored. Once it has ended it can be undone."
    return f"Too late to cancel: the event has ended, {status}."
