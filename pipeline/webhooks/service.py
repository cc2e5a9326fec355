"""Webhooks: what happens to memories, told to whom a project names.

    change of a memory ──► one row a webhook, in the same transaction    lanes/sql/finish_apply
    courier ──► claims what is due ──► signs and posts it ──► DELIVERED, a later try, or DEAD

A courier has a number of tries under way at once and claims another when one ends, project by
project in turn: a slow receiver, or a project with many, delays its own deliveries.

Headers and signature are those of Standard Webhooks. Delivery is at least once, in no order; the
receiver tells doubles by `webhook-id`.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from pipeline.domain.errors import InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.webhooks.addresses import is_public, literal
from pipeline.webhooks.store import Webhook, Webhooks

EVENT_TYPES = (
    *("memory_add", "memory_update", "memory_delete", "memory_categorize"),
    *("event_succeeded", "event_failed"),
)
# Of the Mem0 Platform's own imports: named by clients, never told here.
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
    """A webhook and its secret, in clear for the only time. Errors: InvalidInput."""
    refuse_url(url, private=private)
    refuse_types(event_types)
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
    made = await webhooks.create(
        project_id, name=name, url=url, event_types=event_types, secret=secret
    )
    return made, secret


def refuse_types(event_types: Sequence[str]) -> None:
    """Errors: InvalidInput for none, or one that nobody knows."""
    unknown = [one for one in event_types if one not in (*EVENT_TYPES, *UNKNOWN_HERE)]
    if unknown or not event_types:
        raise InvalidInput(f"event_types: give one or more of {', '.join(EVENT_TYPES)}.")


def refuse_url(url: str, *, private: bool) -> None:
    """Errors: InvalidInput where it can be seen already that nothing may be delivered there.

    Where its name leads to is looked at with each delivery.
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
    if not private and (host == "localhost" or (address and not is_public(address))):
        raise InvalidInput("url leads to a private address; MEMLANE_WEBHOOK_PRIVATE=on allows it.")
