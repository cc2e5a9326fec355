"""Webhooks of the project and the log of their deliveries."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request

from api.auth.tenant import Caller
from api.http.paging import page_of
from api.http.shared_responses import DoneJson, PageJson
from api.http.strict_json import StrictJson
from api.webhooks import requests as webhook_requests
from api.webhooks import responses as webhook_responses
from api.webhooks.responses import DeliveryJson, NewWebhookJson, WebhookJson
from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import Access
from pipeline.webhooks import service
from pipeline.webhooks.store import NO_SUCH_WEBHOOK

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"], route_class=StrictJson)


def as_uuid(webhook_id: str) -> UUID:
    """Parse a webhook id. Errors: NotFound, also for an invalid UUID."""
    try:
        return UUID(webhook_id)
    except ValueError:
        raise NotFound(NO_SUCH_WEBHOOK) from None


WebhookId = Annotated[UUID, Depends(as_uuid)]


@router.get("/projects/{project_id}/")
async def of_project(project_id: str, call: Caller) -> list[WebhookJson]:
    """The project's webhooks. With a read key, only scheme and host of each `url` are shown,
    because the path may be secret.
    """
    hide_path = not call.grant.access.allows(Access.WRITE)
    rows = await call.ledger.webhooks.of(call.project.id)
    return [webhook_responses.webhook(row, hide_path=hide_path) for row in rows]


@router.post("/projects/{project_id}/", status_code=201)
async def create(
    project_id: str, request: webhook_requests.CreateRequest, call: Caller
) -> NewWebhookJson:
    """Create a webhook. Only this response contains its `secret`, which signs deliveries as
    Standard Webhooks defines.
    """
    created, secret = await service.create(
        call.project.id,
        **request.model_dump(),
        private=call.api.settings.webhook_private == "on",
        webhooks=call.ledger.webhooks,
    )
    return {**webhook_responses.webhook(created), "secret": secret}


@router.put("/{webhook_id}/")
async def change(
    webhook_id: WebhookId, request: webhook_requests.ChangeRequest, call: Caller
) -> DoneJson:
    """Change name, URL, event types or activity of a webhook."""
    values = request.model_dump(exclude_none=True)
    if "url" in values:
        service.refuse_url(values["url"], private=call.api.settings.webhook_private == "on")
    if "event_types" in values:
        service.refuse_types(values["event_types"])
    await call.ledger.webhooks.change(call.project.id, webhook_id, values)
    return {"message": "Webhook updated successfully"}


@router.delete("/{webhook_id}/")
async def remove(webhook_id: WebhookId, call: Caller) -> DoneJson:
    """Delete a webhook with its deliveries."""
    await call.ledger.webhooks.remove(call.project.id, webhook_id)
    return {"message": "Webhook deleted successfully"}


@router.get("/{webhook_id}/deliveries/")
async def log(
    webhook_id: WebhookId,
    call: Caller,
    http: Request,
    state: webhook_requests.DeliveryState | None = None,
    number: Annotated[int | None, Query(alias="page")] = None,
    size: Annotated[int | None, Query(alias="page_size")] = None,
) -> PageJson[DeliveryJson]:
    """Deliveries of the last week with their results, newest first."""
    page = page_of(number, size)
    rows, count = await call.ledger.webhooks.log(
        call.project.id, webhook_id, state=state, **page.window
    )
    return page.envelope([webhook_responses.delivery(row) for row in rows], count, http)


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver/")
async def redeliver(webhook_id: WebhookId, delivery_id: UUID, call: Caller) -> DoneJson:
    """Send a delivery again, with the same webhook-id."""
    await call.ledger.webhooks.redeliver(call.project.id, webhook_id, delivery_id)
    return {"message": "Delivery is due"}
