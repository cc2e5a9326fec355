"""Fairness of webhooks: a slow, silent or flooded one does not delay the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update

from pipeline.domain.errors import Unanswered
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables.webhooks import webhook_deliveries, webhooks
from pipeline.webhooks.delivery import EACH, EACH_PROJECT, MOST_SILENT, WebhookDelivery
from pipeline.webhooks.service import create
from tests.integration.webhooks.test_webhooks import outbox
from tests.support.engine import Engine
from tests.support.stack import wait_until


class Receivers:
    """The WebhookSender port: URLs with `slow` in them answer when the test releases them."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.posted: list[str] = []
        self.at_once: Counter[str] = Counter()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.at_once[url] += 1
        if "slow" in url:
            await self.released.wait()
        self.at_once[url] -= 1
        self.posted.append(url)
        return 200

    async def close(self) -> None: ...


class Silent(Receivers):
    """Receivers that never answer; `crowds` has the number of concurrent tries at each timeout."""

    def __init__(self) -> None:
        super().__init__()
        self.crowds: list[int] = []

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.at_once[url] += 1
        await asyncio.sleep(0)
        self.crowds.append(self.at_once[url])
        self.at_once[url] -= 1
        raise Unanswered("No answer within 10 s.")


def webhook_delivery(
    engine: Engine, sender: Receivers, *, tries: int = 8, pause_s: float = 0
) -> WebhookDelivery:
    lease = timedelta(seconds=60)
    return WebhookDelivery(
        engine.ledger.webhooks, sender, tries=tries, first_retry_s=pause_s, lease=lease
    )


async def queue_up(engine: Engine, project_id: ProjectId, url: str, deliveries: int) -> UUID:
    """Create a webhook with this number of pending deliveries."""
    made, _ = await create(
        project_id,
        name="test",
        url=f"https://example.com/{url}",
        event_types=["memory_add"],
        private=False,
        webhooks=engine.ledger.webhooks,
    )
    await add_deliveries(engine, project_id, made.id, deliveries)
    return made.id


async def add_deliveries(
    engine: Engine, project_id: ProjectId, webhook_id: UUID, deliveries: int
) -> None:
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO webhook_deliveries (id, webhook_id, project_id, lane_id, event_type,"
                " body) SELECT gen_random_uuid(), :webhook_id, :project_id, :webhook_id,"
                " 'memory_add', '{}' FROM generate_series(1, :many)"
            ),
            {"webhook_id": webhook_id, "project_id": project_id, "many": deliveries},
        )


async def delivered(engine: Engine, webhook_id: UUID) -> int:
    query = select(func.count()).where(
        webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.state == "DELIVERED"
    )
    async with engine.ledger.engine.connect() as connection:
        return await connection.scalar(query) or 0


async def test_many_slow_webhooks_of_a_project_hold_up_no_other_project(engine: Engine) -> None:
    for n in range(20):
        await queue_up(engine, engine.project.id, f"slow/{n}", 20)
    other, _ = await engine.ledger.projects.create("other")
    theirs = await queue_up(engine, other.id, "quick", 50)
    receivers = Receivers()
    delivering = asyncio.create_task(webhook_delivery(engine, receivers).deliver())

    async def arrived() -> bool:
        return await delivered(engine, theirs) == 50

    await wait_until(arrived, within_s=60, what="the other project's deliveries")
    assert 0 < receivers.at_once.total() <= EACH_PROJECT
    assert max(receivers.at_once.values()) <= EACH
    receivers.released.set()
    delivering.cancel()
    await asyncio.gather(delivering, return_exceptions=True)


async def test_a_delivery_that_comes_while_all_tries_are_slow_is_sent(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.webhooks.delivery.LOOK_EVERY_S", 0.01)
    await queue_up(engine, engine.project.id, "slow", 2 * EACH)
    other, _ = await engine.ledger.projects.create("other")
    theirs = await queue_up(engine, other.id, "quick", 0)
    receivers = Receivers()
    delivering = asyncio.create_task(webhook_delivery(engine, receivers).deliver())

    async def all_slow() -> bool:
        return receivers.at_once.total() == EACH

    async def arrived() -> bool:
        return await delivered(engine, theirs) == 1

    await wait_until(all_slow, within_s=60, what="the tries of the slow webhook")
    await add_deliveries(engine, other.id, theirs, 1)
    try:
        await wait_until(arrived, within_s=60, what="the other project's delivery")
        assert receivers.at_once.total() == EACH
    finally:
        delivering.cancel()
        await asyncio.gather(delivering, return_exceptions=True)


async def test_a_place_is_given_away_as_soon_as_it_is_free(engine: Engine) -> None:
    await queue_up(engine, engine.project.id, "slow", EACH)
    quick = await queue_up(engine, engine.project.id, "quick", 100)
    receivers = Receivers()
    delivering = asyncio.create_task(webhook_delivery(engine, receivers).deliver())

    async def arrived() -> bool:
        return await delivered(engine, quick) == 100

    await wait_until(arrived, within_s=60, what="the deliveries beside the slow one")
    assert "https://example.com/slow" not in receivers.posted
    receivers.released.set()
    await delivering
    assert receivers.posted.count("https://example.com/slow") == EACH


async def test_a_webhook_that_timed_out_is_asked_one_at_a_time(engine: Engine) -> None:
    await queue_up(engine, engine.project.id, "silent", 30)
    receivers = Silent()
    await webhook_delivery(engine, receivers, tries=1).deliver()
    # Tries that were in progress at the first timeout; then one at a time, until it is disabled.
    assert max(receivers.crowds) == EACH
    assert set(receivers.crowds[EACH:]) <= {1}


async def test_one_that_has_never_answered_is_switched_off_after_an_hour(engine: Engine) -> None:
    webhook_id = await queue_up(engine, engine.project.id, "silent", MOST_SILENT)
    await webhook_delivery(engine, Silent(), pause_s=600).deliver()
    [shown] = await engine.ledger.webhooks.of(engine.project.id)
    assert shown.is_active  # the hour is not over
    async with engine.ledger.engine.begin() as connection:
        past = func.now() - timedelta(hours=2)
        await connection.execute(update(webhooks).values(updated_at=past))
        await connection.execute(update(webhook_deliveries).values(due_at=func.now()))
    await webhook_delivery(engine, Silent(), pause_s=600).deliver()
    [shown] = await engine.ledger.webhooks.of(engine.project.id)
    assert (shown.id, shown.is_active) == (webhook_id, False)
    assert "never answered" in (shown.disabled_reason or "")


async def test_one_that_has_answered_once_is_not_switched_off_for_an_outage(
    engine: Engine,
) -> None:
    webhook_id = await queue_up(engine, engine.project.id, "quick", 1)
    await webhook_delivery(engine, Receivers()).deliver()
    async with engine.ledger.engine.begin() as connection:
        past = func.now() - timedelta(hours=2)
        await connection.execute(update(webhooks).values(updated_at=past))
    await add_deliveries(engine, engine.project.id, webhook_id, 2 * MOST_SILENT)
    await webhook_delivery(engine, Silent(), pause_s=600).deliver()
    [shown] = await engine.ledger.webhooks.of(engine.project.id)
    assert shown.is_active


async def test_the_pending_deliveries_of_a_webhook_are_limited_and_the_log_says_so(
    engine: Engine,
) -> None:
    await queue_up(engine, engine.project.id, "quick", 12)
    assert await engine.ledger.webhooks.give_up_excess(most=10) == 2
    assert await engine.ledger.webhooks.give_up_excess(most=10) == 0
    rows = [row for row in await outbox(engine) if row.state == "DEAD"]
    assert len(rows) == 2
    assert all("More than 10 deliveries" in row.error for row in rows)


@pytest.mark.parametrize("active", [True, False])
async def test_only_a_disabled_webhook_loses_its_old_pending_deliveries(
    engine: Engine, active: bool
) -> None:
    webhook_id = await queue_up(engine, engine.project.id, "quick", 3)
    async with engine.ledger.engine.begin() as connection:
        old = {"created_at": func.now() - timedelta(days=8)}
        await connection.execute(update(webhook_deliveries).values(old))
    await engine.ledger.webhooks.change(engine.project.id, webhook_id, {"is_active": active})
    await engine.ledger.webhooks.forget()
    assert len(await outbox(engine)) == (3 if active else 0)


async def test_a_webhook_is_removed_beside_a_try_that_ends(engine: Engine) -> None:
    webhook_id = await queue_up(engine, engine.project.id, "quick", 40)
    delivering = asyncio.create_task(webhook_delivery(engine, Receivers()).deliver())
    await engine.ledger.webhooks.remove(engine.project.id, webhook_id)
    await delivering
    assert await outbox(engine) == []
