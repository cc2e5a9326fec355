"""Events: what became of an add."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import ColumnElement, and_

from api import shapes
from api.deps import Caller, Given
from api.examples import answers
from api.routes.memories import paging, refuse_beyond
from api.strict_json import StrictJson
from pipeline.domain import Status
from pipeline.errors import InvalidInput
from pipeline.filters import moment
from pipeline.ledger.schema import events, lanes

router = APIRouter(tags=["events"], route_class=StrictJson)

LONGEST_WAIT_S = 60.0


@router.get("/v1/event/{event_id}/", responses=answers("event"))
@router.get("/v1/events/{event_id}/", include_in_schema=False)
async def get(
    event_id: str,
    api: Given,
    project: Caller,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0.0,
) -> dict[str, Any]:
    """An event with its receipt; `wait` holds the answer so many seconds until it has ended."""
    identity = uuid(event_id)
    found = await api.stores.ledger.events.get(project.id, identity)
    if wait and found.completed_at is None and await api.watch.ended(identity, timeout_s=wait):
        found = await api.stores.ledger.events.get(project.id, identity)
    return shapes.event(found)


@router.get("/v1/events/")
async def list_events(
    api: Given,
    project: Caller,
    http: Request,
    status: str | None = None,
    event_type: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    app_id: str | None = None,
    run_id: str | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    page: int | None = None,
    page_size: int | None = None,
) -> dict[str, Any]:
    """The project's events, newest first."""
    number, size = paging(page, page_size)
    ids = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    where = and_(
        events.c.project_id == project.id,
        *(lanes.c[name] == value for name, value in ids.items() if value),
        *([events.c.event_type == event_type.upper()] if event_type else []),
        *([events.c.status.in_(statuses(status))] if status else []),
        *between(start_date, end_date),
    )
    found, count = await api.stores.ledger.events.page(
        where, limit=size, offset=(number - 1) * size
    )
    refuse_beyond(number, count, size)
    results = [shapes.event(one) for one in found]
    return shapes.page(results, count=count, page=number, size=size, url=http.url)


def statuses(value: str) -> list[str]:
    """The ledger's words for a client's: FAILED includes CANCELLED."""
    if value.upper() not in set(Status):
        raise InvalidInput(f"status is one of {', '.join(Status)}.")
    failed = [Status.FAILED, Status.CANCELLED]
    return [s.value for s in failed] if value.upper() == Status.FAILED else [value.upper()]


def between(start: str | None, end: str | None) -> list[ColumnElement[bool]]:
    conditions = []
    if start:
        conditions.append(events.c.created_at >= moment("start_date", start))
    if end:
        conditions.append(events.c.created_at <= moment("end_date", end))
    return conditions


def uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput("event_id should be a valid UUID") from None
