"""Hints in a real broker: their queues, and their recovery after the broker has lost them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis as RedisClient

from deploy.stack.servers import Redis
from pipeline.domain.events import AddOptions, StageName
from pipeline.domain.lanes import Hint
from pipeline.domain.messages import Message, Role
from pipeline.lanes.accept import Add
from pipeline.settings import Settings
from tests.support.engine import GRACE_S, RUN_LIMITS, Engine
from workers.app import make_app
from workers.dispatch import CeleryDispatcher
from workers.fair_queues import LOW_QUEUES, MOST_LANES, NORMAL_QUEUES, QUEUES, TAKES
from workers.resend_hints import DEEP, LANES_A_TICK
from workers.sweeper import Sweeper


@pytest.fixture
async def broker(redis: Redis) -> AsyncIterator[RedisClient]:
    async with RedisClient.from_url(redis.url) as client:
        await client.flushall()
        yield client


@pytest.fixture
def dispatcher(redis: Redis, broker: RedisClient) -> CeleryDispatcher:
    return CeleryDispatcher(make_app(Settings(broker_url=SecretStr(redis.url))))


def taken(redis: Redis, count: int, *, low_fits: bool = True) -> list[str]:
    """The queues of the first hints that a worker takes, in order."""
    app = make_app(Settings(broker_url=SecretStr(redis.url)), lambda: low_fits)
    queues: list[str] = []

    def take(_: Any, message: Any) -> None:
        queues.append(message.delivery_info["routing_key"])
        message.ack()

    with app.connection_for_read() as connection:
        consumer = app.amqp.TaskConsumer(connection.channel(), callbacks=[take])
        consumer.qos(prefetch_count=1)
        with consumer:
            while len(queues) < count:
                connection.drain_events(timeout=60)
    return queues


async def depths(broker: RedisClient) -> dict[str, int]:
    lengths: dict[str, Any] = {name: await broker.llen(name) for name in QUEUES}
    return {name: length for name, length in lengths.items() if length}


async def queue_up(engine: Engine, lanes: int) -> None:
    """Accept one event in each of this many lanes, without a hint in the broker."""
    turns = [Message(Role.USER, "I like jazz.")]
    await engine.ledger.group_commit.adds.accept(
        [
            Add(uuid4(), engine.scope(f"user-{n}"), turns, AddOptions(), tokens=4)
            for n in range(lanes)
        ]
    )


def test_a_hint_stands_in_the_queue_it_is_given_to_and_in_no_other(
    dispatcher: CeleryDispatcher, redis: Redis
) -> None:
    for count, name in enumerate(QUEUES, start=1):
        for _ in range(count):
            assert dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), name)
    assert dispatcher.backlogs() == {name: n for n, name in enumerate(QUEUES, start=1)}
    assert dispatcher.backlog() == sum(range(len(QUEUES) + 1))


def test_a_worker_takes_hints_of_low_priority_behind_all_others_and_one_of_ten(
    dispatcher: CeleryDispatcher, redis: Redis
) -> None:
    for name in [LOW_QUEUES[0]] * 4 + [NORMAL_QUEUES[0]] * (TAKES + 3):
        assert dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), name)
    queues = [name in LOW_QUEUES for name in taken(redis, TAKES + 7)]
    assert queues == [*[False] * (TAKES - 1), True, *[False] * 4, True, True, True]


def test_a_worker_without_a_place_for_low_priority_takes_the_others(
    dispatcher: CeleryDispatcher, broker: RedisClient, redis: Redis
) -> None:
    for name in [LOW_QUEUES[0], NORMAL_QUEUES[0], NORMAL_QUEUES[0]]:
        assert dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), name)
    assert taken(redis, 2, low_fits=False) == [NORMAL_QUEUES[0]] * 2
    assert dispatcher.backlog() == 1


async def test_a_broker_forgets_once_each_time_it_is_wiped(
    dispatcher: CeleryDispatcher, broker: RedisClient
) -> None:
    assert [dispatcher.forgot(), dispatcher.forgot()] == [True, False]
    await broker.flushall()
    assert [dispatcher.forgot(), dispatcher.forgot()] == [True, False]


async def test_a_wiped_broker_gets_every_hint_again_at_once(
    engine: Engine, dispatcher: CeleryDispatcher, broker: RedisClient
) -> None:
    """Also those beyond the limit of one tick, although the broker is not empty by then."""
    sweeper = Sweeper(engine.ledger, dispatcher, engine.retention, engine.vectors.ping, RUN_LIMITS)
    await sweeper.tick()
    lanes = LANES_A_TICK + DEEP
    await queue_up(engine, lanes)
    await sweeper.tick()
    assert await depths(broker) == {}  # the grace period is not over
    await broker.flushall()
    await sweeper.tick()
    await sweeper.tick()
    assert await depths(broker) == {NORMAL_QUEUES[-1]: lanes}
    await sweeper.tick()
    assert await depths(broker) == {NORMAL_QUEUES[-1]: lanes}  # each hint is published once


async def test_the_sweeper_puts_a_hint_with_those_of_projects_as_busy(
    engine: Engine, dispatcher: CeleryDispatcher, broker: RedisClient
) -> None:
    sweeper = Sweeper(engine.ledger, dispatcher, engine.retention, engine.vectors.ping, RUN_LIMITS)
    await queue_up(engine, MOST_LANES[0] + 1)
    await sweeper.tick()  # the broker is empty
    assert await depths(broker) == {QUEUES[1]: MOST_LANES[0] + 1}


async def test_a_broker_without_memory_is_away_and_stops_nothing_else(
    engine: Engine, dispatcher: CeleryDispatcher, broker: RedisClient
) -> None:
    """Redis at maxmemory answers, but refuses every write."""
    sweeper = Sweeper(engine.ledger, dispatcher, engine.retention, engine.vectors.ping, RUN_LIMITS)
    await sweeper.tick()
    await queue_up(engine, 1)
    await engine.pass_time(GRACE_S + 1)
    before = await broker.config_get("maxmemory")
    await broker.config_set("maxmemory", 1)
    try:
        assert not await asyncio.to_thread(
            dispatcher.publish, Hint(uuid4(), 0, StageName.EXTRACT), QUEUES[0]
        )
        assert not await asyncio.to_thread(dispatcher.forgot)
        await sweeper.resend_hints()
        assert await depths(broker) == {}
    finally:
        await broker.config_set("maxmemory", before["maxmemory"] or 0)
    await sweeper.resend_hints()
    assert await depths(broker) == {QUEUES[0]: 1}
