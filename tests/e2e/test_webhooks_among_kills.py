"""A hundred webhooks to a receiver that often fails, while the delivering processes are killed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path

import pytest

from tests.support.receiver import Received, WebhookReceiver
from tests.support.stack import Stack, wait_until

MANY = 100
# Failures of each message, in turn. The average of one per message means half of all tries fail.
FAILURES = (0, 1, 2, 1)


class FailsHalfTheTime:
    """Fails each message that number of times; every second failure closes the connection."""

    def __init__(self) -> None:
        self._failures = cycle(FAILURES)
        self._due: dict[str, int] = {}

    def __call__(self, message: str, nth: int) -> int | None:
        if message not in self._due:
            self._due[message] = next(self._failures)
        if nth > self._due[message]:
            return 200
        return 500 if nth % 2 else None


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver(FailsHalfTheTime()) as running:
        yield running


async def test_a_hundred_webhooks_arrive_though_half_fail_and_their_couriers_are_killed(
    tmp_path: Path, receiver: WebhookReceiver
) -> None:
    settings = {
        "MEMLANE_WEBHOOK_PRIVATE": "on",
        "MEMLANE_WEBHOOK_FIRST_RETRY_S": "0.2",
        "MEMLANE_WEBHOOK_TIMEOUT_S": "2",
    }
    with Stack(tmp_path / "stack", settings) as stack:
        async with stack.client() as client:
            project = (await client.http.get("/v1/ping/")).json()["project_id"]
            hook = {"name": "e2e", "url": receiver.url, "event_types": ["memory_add"]}
            made = await client.http.post(f"/api/v1/webhooks/projects/{project}/", json=hook)
            webhook = made.json()
            ids = [await client.add(f"user-{n}", "I live in Bern.") for n in range(MANY)]
            stack.kill("worker-1")

            async def some_sent() -> bool:
                return len(receiver.seen) >= MANY // 4

            await wait_until(some_sent, within_s=60, what="the first deliveries")
            stack.kill("sweeper")
            await client.all_ended(ids, within_s=120)
            log = f"/api/v1/webhooks/{webhook['webhook_id']}/deliveries/"

            async def all_delivered() -> bool:
                answer = await client.http.get(log, params={"state": "DELIVERED"})
                return bool(answer.json()["count"] == MANY)

            await wait_until(all_delivered, within_s=60, what="every delivery to arrive")
            assert (await client.http.get(log)).json()["count"] == MANY
            memories = {(await client.memories(f"user-{n}"))[0]["id"] for n in range(MANY)}
    event_ids = {json.loads(delivery.body)["event_details"]["id"] for delivery in receiver.arrived}
    assert event_ids == memories
    assert len({delivery.id for delivery in receiver.arrived}) == MANY
    assert all(verifies(delivery, webhook["secret"]) for delivery in receiver.seen)
    refused = [delivery for delivery in receiver.seen if delivery.status != 200]
    assert len({delivery.id for delivery in refused}) == MANY * 3 // 4


def verifies(delivery: Received, secret: str) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery.id}.{delivery.headers['webhook-timestamp']}.".encode() + delivery.body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return delivery.headers["webhook-signature"] == f"v1,{digest}"
