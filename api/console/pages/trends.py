"""Trends: the work and the age of the queue over an hour, a day or a week, from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from api.console.page_route import PageRoute
from api.console.rendering import show
from api.console.session import Viewing
from pipeline.accounting.samples import ChartSpan, SeriesPoint

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its title, the names of its lines, and the values of each point."""

    title: str
    labels: Sequence[str]
    fields: Sequence[str]

    def series(self, points: Sequence[SeriesPoint]) -> list[list[float | None]]:
        """The times, then the values of each line."""
        times: list[float | None] = [point.at.timestamp() for point in points]
        return [times, *([getattr(point, name) for point in points] for name in self.fields)]


CHARTS = (
    Chart("Events", ("accepted", "succeeded", "failed"), ("accepted", "succeeded", "failed")),
    Chart("Events not ended", ("open",), ("open",)),
    Chart("Age of the oldest event, seconds", ("ready", "waiting"), ("ready_s", "waiting_s")),
    Chart("Searches", ("searches",), ("searches",)),
    Chart("Memories", ("memories",), ("memories",)),
)


@router.get("/trends")
async def trends(request: Request, session: Viewing, span: str = "") -> Response:
    """The charts of a span; the ledger has a sample of each minute with work, for two weeks."""
    chosen = ChartSpan(span) if span in list(ChartSpan) else ChartSpan.HOUR
    points = await session.ledger.samples.series(session.project.id, chosen)
    return show(
        request,
        "trends.html",
        charts=[(chart, chart.series(points)) for chart in CHARTS],
        points=points,
        span=chosen,
        spans=list(ChartSpan),
    )
