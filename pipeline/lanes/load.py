"""The load: number of waiting events and busy lanes, from the lanes that are not idle."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import and_, exists, func, select

from pipeline.accounting.balance import WAITING_SINCE
from pipeline.domain.backpressure import Load
from pipeline.domain.lanes import LaneClass
from pipeline.ledger.fetching import fetch, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import events, lanes, shadows

# Long enough to average over batches, short enough to follow a change.
MEASURED_OVER_S = 10

# Not IDLE, in the words of the partial index.
BUSY = lanes.c.due_at.is_not(None)
# The lanes of a replay count as its project's.
OWNED = lanes.outerjoin(shadows, shadows.c.id == lanes.c.project_id)
OWNER = func.coalesce(shadows.c.project_id, lanes.c.project_id)
# True if all events that wait in the lane have low priority.
LOW = func.coalesce(lanes.c.normal_seq <= lanes.c.settled_seq, False)


class LoadView(LedgerStore):
    """Reads of the load."""

    async def is_used(self) -> bool:
        """Tell if an event has ever been accepted; False for a new installation."""
        return bool(await fetch_value(self._single, select(exists().select_from(lanes))))

    async def lanes(self) -> Mapping[LaneClass, int]:
        """Return the number of busy lanes of each class, those of the project's replays included.

        A replay has the number of its project.
        """
        busy = func.sum(func.count()).over(partition_by=[OWNER, LOW])
        query = (
            select(lanes.c.project_id, LOW.label("low"), busy.label("busy"))
            .select_from(OWNED)
            .where(BUSY)
            .group_by(lanes.c.project_id, OWNER, LOW)
        )
        rows = await fetch(self._single, query)
        return {(row.project_id, row.low): int(row.busy) for row in rows}

    async def look(self, *, scope_events: int) -> Load:
        """Return the present load; `deep` holds the lanes with at least `scope_events` events."""
        depth = lanes.c.accepted_seq - lanes.c.settled_seq
        # The events of replays have a limit of their own: they refuse no add.
        in_shadow = exists().where(shadows.c.id == lanes.c.project_id)
        busy = and_(BUSY, ~in_shadow)
        waiting = func.sum(depth)
        # Events of low priority wait as long as there are others: they refuse no add.
        ready = func.coalesce(waiting.filter(lanes.c.state != "WAITING", ~LOW), 0)
        by_project = (
            select(lanes.c.project_id, waiting, ready).where(busy).group_by(lanes.c.project_id)
        )
        working = (
            select(OWNER, LOW, func.count()).select_from(OWNED).where(BUSY).group_by(OWNER, LOW)
        )
        deep = select(lanes.c.id, depth).where(busy, depth >= scope_events)
        since = func.now() - timedelta(seconds=MEASURED_OVER_S)
        ended = select(func.count()).where(
            events.c.completed_at > since, events.c.status != "CANCELLED"
        )
        # Start from the lanes: the events of parked lanes are not read.
        waits = exists().where(
            events.c.lane_id == lanes.c.id,
            events.c.seq > lanes.c.settled_seq,
            events.c.status == "PENDING",
            since >= WAITING_SINCE,
        )
        overdue = select(exists().where(busy, lanes.c.state != "WAITING", ~LOW, waits))
        # The head of each lane: one row of its index.
        oldest = (
            select(func.extract("epoch", func.now() - func.min(WAITING_SINCE)))
            .select_from(lanes.join(events, events.c.lane_id == lanes.c.id))
            .where(
                busy,
                lanes.c.state != "WAITING",
                ~LOW,
                events.c.seq == lanes.c.settled_seq + 1,
                events.c.completed_at.is_(None),
            )
        )
        async with self._single.connect() as connection:
            projects = (await connection.execute(by_project)).all()
            drained = await connection.scalar(ended) or 0
            backlogged = await connection.scalar(overdue) or False
            stalled = backlogged and not drained
            return Load(
                projects={row[0]: int(row[1]) for row in projects},
                deep={row[0]: row[1] for row in await connection.execute(deep)},
                lanes={(row[0], row[1]): row[2] for row in await connection.execute(working)},
                ready=sum(int(row[2]) for row in projects),
                drained_per_s=drained / MEASURED_OVER_S,
                backlogged=backlogged,
                oldest_s=float(await connection.scalar(oldest) or 0) if stalled else 0.0,
            )
