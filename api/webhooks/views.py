"""Responses about webhooks and their deliveries."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pipeline.webhooks.store import Delivery, Webhook


def webhook(row: Webhook, *, hide_path: bool = False) -> dict[str, Any]:
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


def delivery(row: Delivery) -> dict[str, Any]:
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
