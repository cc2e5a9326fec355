"""Webhooks of the project, and the log of what they were sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ConfigDict, Field

from api import schemas
from api.dependencies import Caller, Given, Granted
from api.http.paging import page_of
from api.http.strict_json import StrictJson
from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import Access
from pipeline.webhooks import service
from pipeline.webhooks.store import NO_SUCH_WEBHOOK, Delivery, Webhook

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"], route_class=StrictJson)

Name = Annotated[str, Field(min_length=1, max_length=200)]
Url = Annotated[str, Field(min_length=1, max_length=2000)]
State = Literal["PENDING", "DELIVERED", "DEAD"]


def as_uuid(webhook_id: str) -> UUID:
    """Errors: NotFound, also for an invalid UUID."""
    try:
        return UUID(webhook_id)
    except ValueError:
        raise NotFound(NO_SUCH_WEBHOOK) from None


WebhookId = Annotated[UUID, Depends(as_uuid)]


class CreateRequest(schemas.Request):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "audit",
                "url": "https://example.com/memories",
                "event_types": ["memory_add", "memory_delete"],
            }
        }
    )

    name: Name
    url: Url
    event_types: list[str] = Field(min_length=1, max_length=20)


class ChangeRequest(schemas.Request):
    """Only what is given is changed. `is_active` true switches a disabled webhook on again."""

    name: Name | None = None
    url: Url | None = None
    event_types: list[str] | None = Field(None, max_length=20)
    is_active: bool | None = None


@router.get("/projects/{project_id}/")
async def of_project(
    project_id: str, api: Given, project: Caller, grant: Granted
) -> list[dict[str, Any]]:
    """The project's webhooks. A read key sees only scheme and host of a `url`, for its path may
    hold a secret.
    """
    found = [shape(one) for one in await api.stores.ledger.webhooks.of(project.id)]
    if grant.access.allows(Access.WRITE):
        return found
    return [one | {"url": _host(one["url"])} for one in found]


@router.post("/projects/{project_id}/", status_code=201)
async def create(
    project_id: str, request: CreateRequest, api: Given, project: Caller
) -> dict[str, Any]:
    """A new webhook. The answer is the only one that shows its `secret`: deliveries are signed with
    it, as Standard Webhooks has it.
    """
    made, secret = await service.create(
        project.id,
        **request.model_dump(),
        private=api.settings.webhook_private == "on",
        webhooks=api.stores.ledger.webhooks,
    )
    return shape(made) | {"secret": secret}


@router.put("/{webhook_id}/")
async def change(
    webhook_id: WebhookId, request: ChangeRequest, api: Given, project: Caller
) -> dict[str, str]:
    values = request.model_dump(exclude_none=True)
    if "url" in values:
        service.refuse_url(values["url"], private=api.settings.webhook_private == "on")
    if "event_types" in values:
        service.refuse_types(values["event_types"])
    await api.stores.ledger.webhooks.change(project.id, webhook_id, values)
    return {"message": "Webhook updated successfully"}


@router.delete("/{webhook_id}/")
async def remove(webhook_id: WebhookId, api: Given, project: Caller) -> dict[str, str]:
    """With its log, and with what it is still owed."""
    await api.stores.ledger.webhooks.remove(project.id, webhook_id)
    return {"message": "Webhook deleted successfully"}


@router.get("/{webhook_id}/deliveries/")
async def log(
    webhook_id: WebhookId,
    api: Given,
    project: Caller,
    http: Request,
    state: State | None = None,
    number: Annotated[int | None, Query(alias="page")] = None,
    size: Annotated[int | None, Query(alias="page_size")] = None,
) -> dict[str, Any]:
    """What was sent in the last week and the result, newest first."""
    page = page_of(number, size)
    found, count = await api.stores.ledger.webhooks.log(
        project.id, webhook_id, state=state, limit=page.limit, offset=page.offset
    )
    return page.envelope([line(one) for one in found], count, http)


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver/")
async def redeliver(
    webhook_id: WebhookId, delivery_id: UUID, api: Given, project: Caller
) -> dict[str, str]:
    """Send it once more, under the same webhook-id."""
    await api.stores.ledger.webhooks.redeliver(project.id, webhook_id, delivery_id)
    return {"message": "Delivery is due"}


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/…"


def shape(found: Webhook) -> dict[str, Any]:
    return {
        "webhook_id": str(found.id),
        "name": found.name,
        "url": found.url,
        "event_types": found.event_types,
        "owner": str(found.project_id),
        "project": str(found.project_id),
        "is_active": found.is_active,
        "disabled_reason": found.disabled_reason,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def line(found: Delivery) -> dict[str, Any]:
    return {
        "id": str(found.id),
        "event_type": found.event_type,
        "state": found.state,
        "attempts": found.attempts,
        "next_try_at": found.due_at,
        "status_code": found.status_code,
        "error": found.error,
        "created_at": found.created_at,
        "ended_at": found.ended_at,
    }
