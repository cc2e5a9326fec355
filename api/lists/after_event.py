"""Reads that wait for the end of an event: `after_event` and `wait` of lists and searches."""

from __future__ import annotations

from typing_extensions import TypedDict

from api.auth.users import require_key
from api.dependencies import ApiCall
from api.events import responses as event_responses
from api.http.shared_responses import EventStatus
from api.lists.requests import ReadRequest
from pipeline.domain.events import FINAL


class AfterEventJson(TypedDict, total=False):
    """The status of the event, and if it has ended; only with `after_event`."""

    after_event_status: EventStatus
    after_event_ended: bool


async def caught_up(request: ReadRequest, call: ApiCall, user: str | None) -> AfterEventJson:
    """Wait for the event of `after_event`. Returns its status, and if it has ended."""
    if request.after_event is None:
        return {}
    require_key(user, "after_event")
    ledger = call.ledger.events
    status = await ledger.status(call.project.id, request.after_event)
    if status not in FINAL and request.wait:
        await call.api.watch.ended(request.after_event, timeout_s=request.wait)
        status = await ledger.status(call.project.id, request.after_event)
    return {
        "after_event_status": event_responses.shown(status),
        "after_event_ended": status in FINAL,
    }
