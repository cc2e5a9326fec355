"""Live: the numbers of events, the age of the queue, its rate, and providers that do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from api.console.page_route import PageRoute
from api.console.rendering import HEADERS, is_update, show
from api.console.session import ConsoleSession, Viewing
from api.events import responses as event_responses
from pipeline.domain.filters import EventFilter
from pipeline.lanes.queue_view import MinuteCount

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

NEWEST = 12


@router.get("/live")
async def live(request: Request, session: Viewing, project: str = "") -> Response:
    """The present state of the project. The page asks for its numbers again every few seconds.

    `project`: the one that the page shows. If another tab has signed in with the key of another
    one, the whole page is loaded again: it must not show those numbers under the old name.
    """
    if not is_update(request):
        return show(request, "live.html", **await _values(session))
    if project and project != str(session.project.id):
        return Response(headers={"HX-Refresh": "true"})

    async def build() -> bytes:
        return bytes(show(request, "live.html", **await _values(session)).body)

    return HTMLResponse(await session.api.live.html(session.project.id, build), headers=HEADERS)


async def _values(session: ConsoleSession) -> dict[str, Any]:
    """Values of the template: the same for all members of the project."""
    ledger, project = session.ledger, session.project
    rate = await ledger.queue.rate(project.id)
    newest = await ledger.events.newest(project.id, EventFilter(), limit=NEWEST)
    return {
        "totals": await ledger.balance.totals(project.id),
        "ages": await ledger.queue.ages(project.id),
        "cooling": await ledger.circuits.cooling(project.id),
        "rate": rate,
        "series": _series(rate, await ledger.now()),
        "newest": [event_responses.event(event) for event in newest],
        "model": session.api.settings.llm.model,
        "views": await ledger.saved_views.of(project.id),
    }


def _series(rate: Sequence[MinuteCount], now: datetime) -> list[list[int]]:
    """Minutes of the last hour as Unix times, with the numbers of accepted and failed events."""
    last = int(now.timestamp()) // 60 * 60
    by_minute = {int(row.minute.timestamp()): row for row in rate}
    minutes = range(last - 59 * 60, last + 60, 60)
    rows = [by_minute.get(minute) for minute in minutes]
    return [
        list(minutes),
        [row.accepted if row else 0 for row in rows],
        [row.failed if row else 0 for row in rows],
    ]
