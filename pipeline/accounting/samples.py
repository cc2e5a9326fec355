"""Samples of the queue, one a minute and busy project: the series of the console's charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import func, select

from pipeline.accounting.sql import statement
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute
from pipeline.ledger.store import LedgerStore

# Projects that one minute samples at most, the busiest first.
MOST_PROJECTS = 500


class ChartSpan(StrEnum):
    """The time that a chart shows."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


# The time from the first to the last point of a chart, and the time between two points.
SPANS = {
    ChartSpan.HOUR: (timedelta(hours=1), timedelta(minutes=1)),
    ChartSpan.DAY: (timedelta(days=1), timedelta(minutes=15)),
    ChartSpan.WEEK: (timedelta(days=7), timedelta(hours=2)),
}


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A point of the series: what was counted since the point before, and the state at its end.

    `ready_s` and `waiting_s`: the highest age of the oldest event that could be processed, and of
    the oldest that waited.
    """

    at: datetime
    accepted: int
    succeeded: int
    failed: int
    searches: int
    memories: int
    open: int
    ready_s: float
    waiting_s: float


class QueueSamples(LedgerStore):
    """Store of the samples."""

    async def take(self) -> int:
        """Write the sample of this minute of each project that is busy, or was until now.

        Any number of processes can call it: the first one of a minute writes. Returns the number of
        samples.
        """
        return await execute(self._single, statement("take_samples"), {"most": MOST_PROJECTS})

    async def series(self, project_id: ProjectId, span: ChartSpan) -> Sequence[SeriesPoint]:
        """The points of a span from the first sample until now, oldest first.

        A step without a sample had no work, so its point has nothing but the memories.
        """
        length, step = SPANS[span]
        values = {"project_id": project_id, "span": length, "step": step}
        async with self._single.connect() as connection:
            rows = (await connection.execute(statement("series"), values)).all()
            now = await connection.scalar(select(func.now()))
        return _filled([SeriesPoint(**row._asdict()) for row in rows], step, now)


def _filled(
    points: Sequence[SeriesPoint], step: timedelta, now: datetime | None
) -> Sequence[SeriesPoint]:
    """The points with those of idle steps between them, and until now."""
    filled: list[SeriesPoint] = []
    for point in points:
        filled += _idle(filled[-1], step, point.at) if filled else []
        filled.append(point)
    return filled + (_idle(filled[-1], step, now) if filled and now else [])


def _idle(last: SeriesPoint, step: timedelta, until: datetime) -> list[SeriesPoint]:
    """The points of the idle steps behind a point."""
    count = math.ceil((until - last.at) / step) - 1
    zero = SeriesPoint(last.at, 0, 0, 0, 0, last.memories, 0, 0.0, 0.0)
    return [replace(zero, at=last.at + step * number) for number in range(1, count + 1)]
