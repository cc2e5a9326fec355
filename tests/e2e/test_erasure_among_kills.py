"""An erasure while processes are killed, then a raw scan of PostgreSQL, vectors and the broker."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any

import redis
from pydantic import SecretStr

from pipeline.settings import Settings
from tests.e2e.test_first_minutes import in_index
from tests.support.chaos_ledger import broker_url, database_url
from tests.support.engine import build_ledger
from tests.support.raw_look import raw_look
from tests.support.stack import Client, Stack, wait_until
from workers.app import make_app
from workers.fair_queues import QUEUES

USER, WORDS = "zoe-erased", ("zoe-erased", "Valparaiso", "Narwhal")


async def test_an_erasure_holds_though_workers_and_sweeper_are_killed_in_it(
    stack: Stack, client: Client
) -> None:
    done = await client.add(USER, "I live in Valparaiso.", "I own a Narwhal.")
    await client.ended(done)
    waiting = [await client.add(USER, f"I like Narwhal number {n}.") for n in range(30)]
    other = await client.add("jon", "I like rye bread.")
    stack.kill("worker-1")
    answer = await client.http.post("/v1/erasures/", json={"user_id": USER})
    assert answer.status_code == 200, answer.text
    stack.kill("sweeper")
    event = await client.ended(answer.json()["event_id"], within_s=120)
    assert event["status"] == "SUCCEEDED"
    for event in await asyncio.gather(*(client.event(event_id) for event_id in waiting)):
        assert event["status"] in ("SUCCEEDED", "FAILED")
        assert event["payload"]["messages"] == event["results"] == []
    assert (await client.ended(other))["status"] == "SUCCEEDED"
    await looks_empty(stack)
    erased = (await client.http.get(f"/v1/erasures/{answer.json()['event_id']}/")).json()["erased"]
    assert erased["messages"] == 32
    assert erased["memories"] >= 2
    assert (await client.http.get("/v1/stats/")).json()["identity"] is True


async def looks_empty(stack: Stack) -> None:
    ledger = build_ledger(database_url(stack))
    assert await raw_look(ledger, WORDS) == {}
    await ledger.close()

    async def no_vectors() -> bool:
        return not await in_index(stack, [USER])

    await wait_until(no_vectors, within_s=30, what="an index without her")
    stored = await asyncio.to_thread(broker, stack)
    assert not [word for word in WORDS if word.encode() in stored]


def broker(stack: Stack) -> bytes:
    """Everything in the broker: Redis, or the external RabbitMQ."""
    url = stack.settings.get("MEMLANE_BROKER_URL", "")
    return messages_of_queues(url) if url.startswith("amqp:") else keys_and_values(stack)


def messages_of_queues(url: str) -> bytes:
    """Headers and bodies of the messages in RabbitMQ, which stay there."""
    stored = b""
    app = make_app(Settings(broker_url=SecretStr(url)))
    with app.connection_for_read() as connection:
        for queue in QUEUES:
            # Without an acknowledgement; the end of the connection returns them to the queue.
            while (message := connection.default_channel.basic_get(queue)) is not None:
                stored += f"{message.properties} {message.body}".encode()
    return stored


def keys_and_values(stack: Stack) -> bytes:
    """Keys and values in Redis, with the message bodies decoded."""
    url = stack.settings.get("MEMLANE_BROKER_URL") or broker_url(stack)
    with redis.Redis.from_url(url, decode_responses=True) as client:
        stored = "".join(f"{key} {value(client, key)}" for key in client.scan_iter())
    bodies = re.findall(r'"body": "([A-Za-z0-9+/=]+)"', stored)
    return stored.encode() + b"".join(map(base64.b64decode, bodies))


def value(client: Any, key: str) -> str:
    match client.type(key):
        case "list":
            return str(client.lrange(key, 0, -1))
        case "hash":
            return str(client.hgetall(key))
        case "zset" | "set":
            return ""  # tags and queue names that kombu stores for itself
        case _:
            return str(client.get(key))
