"""Delivery of webhooks: retries, pauses and dead letters."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.domain.errors import Unanswered, Undeliverable
from pipeline.ports import WebhookSender
from pipeline.webhooks.signature import sign
from pipeline.webhooks.store import Try, TryResult, Webhooks

log = structlog.get_logger()


# Maximum number of concurrent tries: in total, per project, per webhook. A webhook that timed out
# gets one.
AT_ONCE, EACH_PROJECT, EACH = 64, 16, 5
FACTOR, LONGEST_PAUSE_S, JITTER = 4.0, 6 * 3600.0, 0.2
# Number of dead deliveries in a row after which the webhook is disabled.
MOST_DEAD = 5
# Number of tries without an answer after which a webhook that never answered is disabled.
MOST_SILENT = 20
# Interval of looking for deliveries that became due while tries are running.
LOOK_EVERY_S = 1.0
# Interval of deleting old log lines and of limiting the backlog of each webhook.
TIDY_EVERY_S = 60.0
GONE = 410


@dataclass(slots=True)
class WebhookDelivery:
    """Sends due deliveries. Any number can run at once, and each can be killed at any point.

    `tries`: tries of a delivery before it is dead; `first_retry_s`: pause before the second try.
    """

    webhooks: Webhooks
    sender: WebhookSender
    tries: int
    first_retry_s: float
    # Time after which another process may take over a try; longer than any try may last.
    lease: timedelta
    # Webhooks whose last try timed out.
    _slow: set[UUID] = field(default_factory=set)
    _tidied_at: float = -TIDY_EVERY_S

    async def deliver(self) -> None:
        """Send all due deliveries, a bounded number at once.

        Returns when none is due or running.
        """
        under_way: dict[asyncio.Task[None], UUID] = {}
        try:
            while await self._begin(under_way):
                ended, _ = await asyncio.wait(
                    under_way, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
                for task in ended:
                    del under_way[task]
                    task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _begin(self, under_way: dict[asyncio.Task[None], UUID]) -> bool:
        """Claim due deliveries for all free slots. False if none is running then."""
        await self._tidy()
        claimed = await self.webhooks.claim(
            limit=AT_ONCE - len(under_way),
            each=EACH,
            each_project=EACH_PROJECT,
            lease=self.lease,
            under_way=list(under_way.values()),
            slow=self._slow,
        )
        for delivery in claimed:
            under_way[asyncio.create_task(self._try(delivery))] = delivery.webhook_id
        return bool(under_way)

    async def _tidy(self) -> None:
        if time.monotonic() - self._tidied_at < TIDY_EVERY_S:
            return
        self._tidied_at = time.monotonic()
        await self.webhooks.forget()
        if given_up := await self.webhooks.give_up_excess():
            telemetry.webhook_tries.labels("DROPPED").inc(given_up)
            log.warning("deliveries_given_up", count=given_up)

    async def _try(self, delivery: Try) -> None:
        with telemetry.webhook_seconds.time():
            result = await self._post(delivery)
        if result.answered:
            self._slow.discard(delivery.webhook_id)
        elif result.timed_out:
            self._slow.add(delivery.webhook_id)
        await self.webhooks.end(delivery, result, most_dead=MOST_DEAD, most_silent=MOST_SILENT)
        telemetry.webhook_tries.labels(result.state).inc()
        if result.state == "DEAD":
            log.warning("delivery_dead", delivery_id=str(delivery.id), status=result.status_code)

    async def _post(self, delivery: Try) -> TryResult:
        """Sign and send one delivery. A status of 2xx is success."""
        body = delivery.body.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Memlane",
            "webhook-id": str(delivery.id),
            "webhook-timestamp": str(delivery.sent_at),
            "webhook-signature": sign(delivery.secret, delivery.id, delivery.sent_at, body),
        }
        try:
            status = await self.sender.post(delivery.url, body, headers)
        except Undeliverable as error:
            failed = self._failed(delivery, error=str(error))
            return replace(failed, timed_out=isinstance(error, Unanswered))
        if 200 <= status < 300:
            return TryResult("DELIVERED", status_code=status)
        return self._failed(delivery, status_code=status)

    def _failed(
        self, delivery: Try, *, status_code: int | None = None, error: str | None = None
    ) -> TryResult:
        gone = status_code == GONE
        if gone or delivery.attempt >= self.tries:
            return TryResult("DEAD", status_code=status_code, error=error, gone=gone)
        pause_s = min(self.first_retry_s * FACTOR ** (delivery.attempt - 1), LONGEST_PAUSE_S)
        jittered = pause_s * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  no secret
        return TryResult("PENDING", jittered, status_code, error)
