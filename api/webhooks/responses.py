"""Responses about webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.webhooks.store import Delivery, Webhook


class WebhookJson(TypedDict):
    """A webhook, without its secret. `owner` and `project`: its project."""

    webhook_id: Id
    name: str
    url: str
    event_types: Sequence[str]
    owner: Id
    project: Id
    is_active: bool
    disabled_reason: str | None
    created_at: datetime
    updated_at: datetime


class NewWebhookJson(WebhookJson):
    """A new webhook, with the secret that signs its deliveries."""

    secret: str


class DeliveryJson(TypedDict):
    """A delivery and the result of its last attempt."""

    id: Id
    event_type: str
    state: str
    attempts: int
    next_try_at: datetime | None
    status_code: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


def webhook(row: Webhook, *, hide_path: bool = False) -> WebhookJson:
    """A webhook. `hide_path`: show only scheme and host of its URL; the path may be secret."""
    url, project = row.url, row.project_id
    if hide_path:
        parts = urlsplit(url)
        url = f"{parts.scheme}://{parts.hostname}/…"
    return json_of(WebhookJson, row, webhook_id=row.id, url=url, owner=project, project=project)


def delivery(row: Delivery) -> DeliveryJson:
    """A delivery and the result of its last attempt."""
    return json_of(DeliveryJson, row, next_try_at=row.due_at)
