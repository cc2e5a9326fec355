"""Concurrent adds of one user: the same fact is stored once, and the later of two moves wins."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.stack import Client, Stack

SAME, ROUNDS, MOVERS = 20, 10, 50


async def agreement(data_dir: Path) -> dict[str, Any]:
    stack = Stack(data_dir, {"MEMLANE_WORKERS": "2"})
    await asyncio.to_thread(stack.up)
    try:
        async with stack.client() as client:
            same = [await same_fact(client, f"echo-{n}") for n in range(ROUNDS)]
            return {
                "same_fact_at_once": {
                    "adds": SAME,
                    "users": ROUNDS,
                    "one_memory_and_the_rest_name_it": sum(same),
                },
                "contradictions": {"users": MOVERS, "later_holds": await later_holds(client)},
            }
    finally:
        await asyncio.to_thread(stack.down)


async def same_fact(client: Client, user: str) -> bool:
    adds = (client.add(user, "I am allergic to peanuts.") for _ in range(SAME))
    events = await client.all_ended(await asyncio.gather(*adds), within_s=60)
    rows = [row for event in events for row in event["results"]]
    [memory] = await client.memories(user)
    outcomes = Counter(row["event"] for row in rows)
    return outcomes == {"ADD": 1, "NOOP": SAME - 1} and {r["id"] for r in rows} == {memory["id"]}


async def later_holds(client: Client) -> int:
    async def move(user: str) -> list[str]:
        return [await client.add(user, f"I live in {city}.") for city in ("Berlin", "Oslo")]

    users = [f"mover-{n}" for n in range(MOVERS)]
    ids = await asyncio.gather(*(move(user) for user in users))
    await client.all_ended([event_id for both in ids for event_id in both], within_s=120)
    texts_by_user = [[m["memory"] for m in await client.memories(user)] for user in users]
    return sum(len(texts) == 1 and "Oslo" in texts[0] for texts in texts_by_user)
