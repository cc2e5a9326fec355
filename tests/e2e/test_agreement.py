"""Concurrent adds of one user: each fact is stored once, and the last add wins."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.support.stack import Client

SAME, MOVERS = 20, 10


async def test_the_same_fact_said_many_times_at_once_is_one_memory(client: Client) -> None:
    adds = (client.add("echo", "I am allergic to peanuts.") for _ in range(SAME))
    events = await client.all_ended(await asyncio.gather(*adds), within_s=120)
    rows = [row for event in events for row in event["results"]]
    assert Counter(row["event"] for row in rows) == {"ADD": 1, "NOOP": SAME - 1}
    [memory] = await client.memories("echo")
    assert {row["id"] for row in rows} == {memory["id"]}


async def test_of_two_facts_that_contradict_each_other_the_later_holds(client: Client) -> None:
    async def move(user: str) -> list[str]:
        return [await client.add(user, f"I live in {city}.") for city in ("Berlin", "Oslo")]

    users = [f"mover-{n}" for n in range(MOVERS)]
    ids = await asyncio.gather(*(move(user) for user in users))
    await client.all_ended([event_id for both in ids for event_id in both], within_s=120)
    for user in users:
        [memory] = await client.memories(user)
        assert "Oslo" in memory["memory"]
