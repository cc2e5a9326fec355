"""Hints over RabbitMQ: queues, low priority, restarts and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from deploy.stack.check import CHECKS
from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint
from pipeline.settings import Settings
from tests.support.rabbitmq import RabbitMQ
from workers.app import make_app
from workers.dispatch import CeleryDispatcher
from workers.fair_queues import LOW_QUEUES, NORMAL_QUEUES, QUEUES, RECHECK_S, TAKES

LOW, NORMAL = LOW_QUEUES[0], NORMAL_QUEUES[0]
ROUNDS = 200


def settings(server: RabbitMQ) -> Settings:
    return Settings(broker_url=SecretStr(server.url))


@pytest.fixture
def dispatcher(rabbitmq: RabbitMQ) -> CeleryDispatcher:
    """A dispatcher whose queues exist and are empty."""
    dispatcher = CeleryDispatcher(make_app(settings(rabbitmq)))
    with make_app(settings(rabbitmq)).connection_for_write() as connection:
        for name in QUEUES:
            connection.default_channel.queue_delete(name)
    assert dispatcher.backlog() == 0
    return dispatcher


def publish(dispatcher: CeleryDispatcher, *queues: str) -> None:
    for queue in queues:
        assert dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), queue)


def taken(
    server: RabbitMQ, count: int, *, low_fits: Callable[[], bool] = lambda: True
) -> list[str]:
    """The queues of the first hints that a worker takes, in order."""
    app = make_app(settings(server), low_fits)
    queues: list[str] = []

    def take(_: Any, message: Any) -> None:
        queues.append(message.delivery_info["routing_key"])
        message.ack()

    with app.connection_for_read() as connection:
        channel = connection.channel()
        consumer = app.amqp.TaskConsumer(channel, callbacks=[take])
        consumer.qos(prefetch_count=1, apply_global=True)
        with consumer:
            for _ in range(ROUNDS):
                if len(queues) >= count:
                    break
                try:
                    connection.drain_events(timeout=RECHECK_S)
                except TimeoutError:
                    channel.adjust()
    return queues


def test_a_hint_stands_in_the_queue_it_is_given_to_and_in_no_other(
    dispatcher: CeleryDispatcher,
) -> None:
    for count, name in enumerate(QUEUES, start=1):
        publish(dispatcher, *[name] * count)
    assert dispatcher.backlogs() == {name: n for n, name in enumerate(QUEUES, start=1)}


def test_a_worker_takes_hints_of_all_queues(
    dispatcher: CeleryDispatcher, rabbitmq: RabbitMQ
) -> None:
    publish(dispatcher, *QUEUES)
    assert sorted(taken(rabbitmq, len(QUEUES))) == sorted(QUEUES)


def test_a_worker_takes_few_hints_of_low_priority_beside_others(
    dispatcher: CeleryDispatcher, rabbitmq: RabbitMQ
) -> None:
    publish(dispatcher, *[LOW] * 6, *[NORMAL] * 2 * TAKES)
    queues = taken(rabbitmq, 2 * TAKES + 6)
    first = queues[: 2 * TAKES]
    assert 1 <= first.count(LOW) <= 3
    assert queues[-2:] == [LOW] * 2  # nothing else was left
    assert dispatcher.backlog() == 0


def test_a_worker_without_a_place_for_low_priority_takes_the_others(
    dispatcher: CeleryDispatcher, rabbitmq: RabbitMQ
) -> None:
    publish(dispatcher, LOW, NORMAL, NORMAL)
    assert taken(rabbitmq, 2, low_fits=lambda: False) == [NORMAL, NORMAL]
    assert dispatcher.backlog() == 1


def test_a_restarted_server_has_forgotten_its_hints_and_says_so_once(
    dispatcher: CeleryDispatcher, rabbitmq: RabbitMQ
) -> None:
    publish(dispatcher, NORMAL)
    dispatcher.forgot()
    assert not dispatcher.forgot()
    rabbitmq.kill()
    assert dispatcher.backlogs() is None
    assert not dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), NORMAL)
    rabbitmq.start()
    assert dispatcher.backlog() == 0
    assert [dispatcher.forgot(), dispatcher.forgot()] == [True, False]
    publish(dispatcher, NORMAL)
    assert taken(rabbitmq, 1) == [NORMAL]


async def test_the_check_names_what_is_wrong_and_not_the_password(rabbitmq: RabbitMQ) -> None:
    good = await asyncio.to_thread(settings, rabbitmq)
    assert (await CHECKS["broker"](good)).refused == []
    bad = rabbitmq.url.replace("@", "-secret@")
    (refused,) = (await CHECKS["broker"](Settings(broker_url=SecretStr(bad)))).refused
    assert refused.startswith(f"MEMLANE_BROKER_URL (127.0.0.1:{rabbitmq.port}): ")
    assert "secret" not in refused
