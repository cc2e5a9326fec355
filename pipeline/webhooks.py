"""Webhooks: what happens to memories, told to whom a project names.

    change of a memory ──► one row a webhook, in the same transaction    ledger/sql/finish_apply
    courier ──► claims what is due ──► signs and posts it ──► DELIVERED, a later try, or DEAD

A courier has a number of tries under way at once and claims another when one ends, project by
project in turn: a slow receiver, or a project with many, delays its own deliveries.

Headers and signature are those of Standard Webhooks. Delivery is at least once, in no order; the
receiver tells doubles by `webhook-id`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.addresses import is_public, literal
from pipeline.domain.errors import InvalidInput, Unanswered, Undeliverable
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.webhooks import Try, Verdict, Webhook, Webhooks
from pipeline.ports import WebhookSender

log = structlog.get_logger()

EVENT_TYPES = (
    *("memory_add", "memory_update", "memory_delete", "memory_categorize"),
    *("event_succeeded", "event_failed"),
)
# Of the Mem0 Platform's own imports: named by clients, never told here.
UNKNOWN_HERE = tuple(
    f"ingest_job_{end}" for end in ("completed", "partially_completed", "failed", "cancelled")
)
# Tries under way at once: of all, of one project, of one webhook. One that has timed out has one.
AT_ONCE, EACH_PROJECT, EACH = 64, 16, 5
FACTOR, LONGEST_PAUSE_S, JITTER = 4.0, 6 * 3600.0, 0.2
# So many deliveries given up in a row, and the webhook is switched off.
MOST_DEAD = 5
# So many tries without an answer, and a webhook that has never answered is switched off.
MOST_SILENT = 20
# How often old logs are deleted, and webhooks that owe too much looked for.
TIDY_EVERY_S = 60.0
SECRET_BYTES = 32
GONE = 410


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


def sign(secret: str, message_id: UUID, sent_at: int, body: bytes) -> str:
    """The `webhook-signature` of Standard Webhooks, version 1."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{sent_at}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


@dataclass(slots=True)
class Courier:
    """Delivers what is due. Any number may do so at once, and each may be killed at any point."""

    webhooks: Webhooks
    sender: WebhookSender
    tries: int
    first_retry_s: float
    # Longer than a try may take: then it is somebody else's.
    lease: timedelta
    # Webhooks whose last try had no answer within the time.
    _slow: set[UUID] = field(default_factory=set)
    _tidied_at: float = -TIDY_EVERY_S

    async def deliver(self) -> None:
        """All that is due, a bounded number at once."""
        under_way: dict[asyncio.Task[None], UUID] = {}
        try:
            while await self._begin(under_way):
                ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    del under_way[task]
                    task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _begin(self, under_way: dict[asyncio.Task[None], UUID]) -> bool:
        """Give every free place to a delivery that is due. False where none is under way."""
        await self._tidy()
        claimed = await self.webhooks.claim(
            limit=AT_ONCE - len(under_way),
            each=EACH,
            each_project=EACH_PROJECT,
            lease=self.lease,
            under_way=list(under_way.values()),
            slow=self._slow,
        )
        for one in claimed:
            under_way[asyncio.create_task(self._try(one))] = one.webhook_id
        return bool(under_way)

    async def _tidy(self) -> None:
        if time.monotonic() - self._tidied_at < TIDY_EVERY_S:
            return
        self._tidied_at = time.monotonic()
        await self.webhooks.forget()
        if given_up := await self.webhooks.give_up_excess():
            telemetry.webhook_tries.labels("DROPPED").inc(given_up)
            log.warning("deliveries_given_up", count=given_up)

    async def _try(self, one: Try) -> None:
        with telemetry.webhook_seconds.time():
            verdict = await self._post(one)
        if verdict.answered:
            self._slow.discard(one.webhook_id)
        elif verdict.timed_out:
            self._slow.add(one.webhook_id)
        await self.webhooks.end(one, verdict, most_dead=MOST_DEAD, most_silent=MOST_SILENT)
        telemetry.webhook_tries.labels(verdict.state).inc()
        if verdict.state == "DEAD":
            log.warning("delivery_dead", delivery_id=str(one.id), status=verdict.status_code)

    async def _post(self, one: Try) -> Verdict:
        body = one.body.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Memlane",
            "webhook-id": str(one.id),
            "webhook-timestamp": str(one.sent_at),
            "webhook-signature": sign(one.secret, one.id, one.sent_at, body),
        }
        try:
            status = await self.sender.post(one.url, body, headers)
        except Undeliverable as error:
            failed = self._failed(one, error=str(error))
            return replace(failed, timed_out=isinstance(error, Unanswered))
        if 200 <= status < 300:
            return Verdict("DELIVERED", status_code=status)
        return self._failed(one, status_code=status)

    def _failed(
        self, one: Try, *, status_code: int | None = None, error: str | None = None
    ) -> Verdict:
        gone = status_code == GONE
        if gone or one.attempt >= self.tries:
            return Verdict("DEAD", status_code=status_code, error=error, gone=gone)
        pause_s = min(self.first_retry_s * FACTOR ** (one.attempt - 1), LONGEST_PAUSE_S)
        jittered = pause_s * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  no secret
        return Verdict("PENDING", jittered, status_code, error)
