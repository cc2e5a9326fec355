"""Responses about webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from api.http.shared_responses import Id
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
    return {
        "webhook_id": str(row.id),
        "name": row.name,
        "url": _host(row.url) if hide_path else row.url,
        "event_types": row.event_types,
        "owner": str(row.project_id),
        "project": str(row.project_id),
        "is_active": row.is_active,
        "disabled_reason": row.disabled_reason,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def delivery(row: Delivery) -> DeliveryJson:
    """A delivery and the result of its last attempt."""
    return {
        "id": str(row.id),
        "event_type": row.event_type,
        "state": row.state,
        "attempts": row.attempts,
        "next_try_at": row.due_at,
        "status_code": row.status_code,
        "error": row.error,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
    }


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/…"
