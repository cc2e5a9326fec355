"""Webhooks: notifications about changes of memories and events, sent to URLs of a project.

    change of a memory ──► one row per webhook, in the same transaction    lanes/sql/finish_apply
    delivery ──► claims due rows ──► signs and posts ──► DELIVERED, a later try, or DEAD

A process runs a number of tries at once and claims another one when one ends, from one project
after the other. So a slow receiver, or a project with many deliveries, delays only its own.

Headers and signature follow Standard Webhooks. Delivery is at least once, in no order; the receiver
detects duplicates by `webhook-id`.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from pipeline.domain.errors import InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.webhooks.addresses import is_public, is_this_machine, literal
from pipeline.webhooks.store import Webhook, Webhooks

EVENT_TYPES = (
    *("memory_add", "memory_update", "memory_delete", "memory_categorize"),
    *("event_succeeded", "event_failed"),
    "seal_head",
)
# Types of the Mem0 Platform's import jobs: accepted from clients, but never sent.
UNKNOWN_HERE = tuple(
    f"ingest_job_{end}" for end in ("completed", "partially_completed", "failed", "cancelled")
)
SECRET_BYTES = 32


async def create(
    project_id: ProjectId,
    *,
    name: str,
    url: str,
    event_types: Sequence[str],
    private: bool,
    webhooks: Webhooks,
) -> tuple[Webhook, str]:
    """Create a webhook and return it with its secret, which is shown only this once.

    Errors: InvalidInput.
    """
    refuse_url(url, private=private)
    refuse_types(event_types)
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
    made = await webhooks.create(
        project_id, name=name, url=url, event_types=event_types, secret=secret
    )
    return made, secret


def refuse_types(event_types: Sequence[str]) -> None:
    """Check the event types of a webhook. Errors: InvalidInput for none or an unknown one."""
    unknown = [name for name in event_types if name not in (*EVENT_TYPES, *UNKNOWN_HERE)]
    if unknown or not event_types:
        raise InvalidInput(f"event_types: give one or more of {', '.join(EVENT_TYPES)}.")


def refuse_url(url: str, *, private: bool) -> None:
    """Check the URL of a webhook, without a name look-up. Errors: InvalidInput.

    The addresses of a host name are checked at each delivery. `private`: allow private addresses.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("url is not a URL.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput("url has to begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url must not hold a user name or password: deliveries are signed.")
    address = literal(host)
    if not private and (is_this_machine(host) or (address and not is_public(address))):
        raise InvalidInput("url leads to a private address; MEMLANE_WEBHOOK_PRIVATE=on allows it.")
