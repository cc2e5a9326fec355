"""Failures: failed events by code, retried one by one or all of a code; webhooks and deliveries."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.console.cursors import PAGE
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, number_in, show
from api.console.session import Changing, Viewing
from api.events import responses as event_responses
from api.events import routes as event_routes
from api.events.requests import ReplayManyRequest
from api.http.ids import uuid
from api.webhooks import requests as webhook_requests
from api.webhooks import routes
from pipeline.domain.events import FailureCode
from pipeline.events.dead_letters import dead_letters
from pipeline.webhooks.service import EVENT_TYPES

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

NEWEST = 15


@router.get("/failures")
async def failures(request: Request, session: Viewing) -> Response:
    """Number of failed events by code, and the newest ones."""
    events, counts = session.ledger.events, {}
    for code in FailureCode:
        if count := await events.count(session.project.id, dead_letters(code)):
            counts[code] = count
    newest = await events.newest(session.project.id, dead_letters(), limit=NEWEST)
    return show(
        request,
        "failures.html",
        counts=counts,
        newest=[event_responses.event(row) for row in newest],
    )


@router.post("/failures/retry")
async def retry(request: Request, session: Changing, fields: Form) -> Response:
    """Retry the failed events of a code, oldest first, up to 1,000."""
    wanted = checked(ReplayManyRequest, code=fields.text("code"))
    await event_routes.replay_many(wanted, session)
    return back(request, "/failures", done="all-retried")


@router.get("/webhooks")
async def webhooks(request: Request, session: Viewing) -> Response:
    """The project's webhooks."""
    rows = await routes.of_project(str(session.project.id), session)
    return show(request, "webhooks.html", webhooks=rows, kinds=EVENT_TYPES)


@router.post("/webhooks")
async def create(request: Request, session: Changing, fields: Form) -> Response:
    """Create a webhook; this page alone shows its secret."""
    wanted = checked(
        webhook_requests.CreateRequest,
        name=fields.text("name"),
        url=fields.text("url"),
        event_types=fields.all("event_types"),
    )
    made = await routes.create(str(session.project.id), wanted, session)
    return show(
        request, "secret.html", title="Webhook created", secret=made["secret"], after="/webhooks",
        about="This secret signs the deliveries, as Standard Webhooks defines.",
    )  # fmt: skip


@router.get("/webhooks/{webhook_id}")
async def deliveries(
    webhook_id: str, request: Request, session: Viewing, page: str = "1"
) -> Response:
    """The deliveries of a webhook in the last week."""
    identity = uuid("webhook_id", webhook_id)
    rows = await routes.of_project(str(session.project.id), session)
    number = number_in(page, digits=4) or 1
    log = await routes.log(identity, session, request, None, number, PAGE)
    [webhook] = [row for row in rows if row["webhook_id"] == str(identity)]
    older = {"page": str(number + 1)} if log["next"] else None
    return show(request, "deliveries.html", webhook=webhook, deliveries=log["results"], older=older)


@router.post("/webhooks/{webhook_id}/active")
async def switch(webhook_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Turn a webhook on or off."""
    change = checked(webhook_requests.ChangeRequest, is_active=fields.flag("on"))
    await routes.change(uuid("webhook_id", webhook_id), change, session)
    return back(request, f"/webhooks/{webhook_id}", done="saved")


@router.post("/webhooks/{webhook_id}/delete")
async def remove(webhook_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Delete a webhook with its deliveries."""
    fields.require("sure")
    await routes.remove(uuid("webhook_id", webhook_id), session)
    return back(request, "/webhooks", done="webhook-deleted")


@router.post("/webhooks/{webhook_id}/deliveries/{delivery_id}")
async def redeliver(
    webhook_id: str, delivery_id: str, request: Request, session: Changing
) -> Response:
    """Send a delivery again."""
    identity: UUID = uuid("delivery_id", delivery_id)
    await routes.redeliver(uuid("webhook_id", webhook_id), identity, session)
    return back(request, f"/webhooks/{webhook_id}", done="due")
