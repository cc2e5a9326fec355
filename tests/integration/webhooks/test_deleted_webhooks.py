"""Changes at the moment at which a webhook of their project is deleted: they wait, then succeed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
from sqlalchemy import delete, func, select

from pipeline.domain.lanes import Hint
from pipeline.ledger.tables.webhooks import webhook_deliveries, webhooks
from pipeline.stores import Ledger
from pipeline.webhooks.service import create
from tests.integration.events.test_cancel import is_blocked
from tests.support.api_service import Service, serving
from tests.support.engine import Engine
from tests.support.stack import wait_until

TYPES = ["memory_add", "memory_update", "memory_delete", "event_succeeded", "event_failed"]


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def listen(engine: Engine) -> None:
    """Create a webhook whose receiver does not matter."""
    await create(
        engine.project.id,
        name="test",
        url="http://127.0.0.1:9/",
        event_types=TYPES,
        private=True,
        webhooks=engine.ledger.webhooks,
    )


async def count_deliveries(engine: Engine) -> int:
    async with engine.ledger.engine.connect() as connection:
        number = await connection.scalar(select(func.count()).select_from(webhook_deliveries))
    return int(number or 0)


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_a_change_by_a_person(service: Service, change: str) -> None:
    engine = service.engine
    await service.add("I like tea.")
    [stored] = await service.listed()
    await listen(engine)
    path = f"/v1/memories/{stored['id']}/"
    async with engine.ledger.engine.begin() as deleting:
        await deleting.execute(delete(webhooks))
        if change == "edit":
            changing = asyncio.create_task(service.client.put(path, json={"text": "Likes rum"}))
        else:
            changing = asyncio.create_task(service.client.delete(path))
        await wait_until(lambda: is_blocked(engine), within_s=10, what="the change")
    answer = await changing
    assert answer.status_code == 200, answer.text
    assert await count_deliveries(engine) == 0


async def test_the_stages_of_an_event(engine: Engine) -> None:
    """A stage whose commit a deleted webhook would hear of is not repeated."""
    await engine.add("I like jazz.")
    await engine.drain()
    await engine.add("I like rum.")
    usual = await count_steps(engine)
    await listen(engine)
    event_id = await engine.add("I like tea.")
    assert await count_steps(engine, deleting=True) == usual
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == ("SUCCEEDED", "SUCCEEDED")
    assert await count_deliveries(engine) == 0


async def count_steps(engine: Engine, *, deleting: bool = False) -> int:
    """Number of steps to the end of all events. `deleting`: all webhooks are deleted in each."""
    steps = 0
    while engine.hints.waiting:
        steps += 1
        if not deleting:
            await engine.step()
            continue
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(delete(webhooks))
            working = asyncio.create_task(engine.step())
            ends = partial(blocked_or_done, engine, working)
            await wait_until(ends, within_s=10, what="the step")
        await working
        await listen(engine)
    return steps


async def blocked_or_done(engine: Engine, task: asyncio.Task[Hint | None]) -> bool:
    return task.done() or await is_blocked(engine)
