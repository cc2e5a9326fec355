"""Locks of events: the lane of an event is locked before its status is read.

Every status of an event changes under its lane's lock. So a change locks the lane first and reads
the status then: it cannot change in between.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.events.store import NO_SUCH_EVENT
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.tables import events, lanes


def is_event(project_id: ProjectId, event_id: UUID) -> ColumnElement[bool]:
    """The condition for one event."""
    return and_(events.c.project_id == project_id, events.c.id == event_id)


async def lock_lanes_of(connection: AsyncConnection, where: ColumnElement[bool]) -> None:
    """Lock the lanes of these events. Errors: NotFound if there is no such event."""
    of_events = select(events.c.lane_id).where(where)
    if not await lock_lanes(connection, lanes.c.id.in_(of_events)):
        raise NotFound(NO_SUCH_EVENT)
