"""A week compressed: what levels off while users come, talk and are erased.

    python -m tests.bench.week --minutes 10

A day takes a seventh of the time. Every day brings new users, whose turns are added with keys of
idempotency, and searches; the users of the day before yesterday are erased. All lifetimes are a
day. So from the third day on, each table must keep its size, and each process its memory. Prints
both for every day, with the dead rows and runs of autovacuum, and the growth from the fourth day to
the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from deploy.docs.tables import table
from tests.bench.engine import PENDING_VECTORS, idle
from tests.bench.footprint import programs
from tests.bench.hosted import hosted, provider, sentence
from tests.bench.load import search_request, send_all
from tests.support.chaos_ledger import database_url
from tests.support.stack import Client, Stack, wait_until

DAYS, STEADY_FROM = 7, 4
DAY_H = 24.0
# Turns of a user on a day, and the share of requests that search.
TURNS, SEARCHES = 10, 5
CALLERS = 12
# The sweeper writes vectors that a worker has not written after a minute.
CAUGHT_UP_S = 300.0
# Users that are served before the clock is read again.
PART = 10
# Limit of new users a second, so that erasing as many leaves time for the adds of a day.
USERS_PER_S = 5
# Tables below this size are counted together.
SMALL_BYTES = 300_000
MB = 1e6
SIZES = """
SELECT relname AS name, pg_table_size(relid) AS heap, pg_indexes_size(relid) AS indexes,
       n_live_tup AS live, n_dead_tup AS dead, autovacuum_count AS vacuums
FROM pg_stat_user_tables
"""
FIGURES = ("heap", "indexes", "live", "dead", "vacuums")
ERASED = "SELECT count(*) FROM events WHERE event_type = 'DELETE_USER' AND completed_at IS NULL"


@dataclass(frozen=True, slots=True)
class Day:
    """The state at the end of a day, when nothing is under way."""

    number: int
    events: int
    tables: Mapping[str, Mapping[str, int]]
    memory_mb: Mapping[str, int]

    @property
    def size_mb(self) -> float:
        """Size of all tables with their indexes."""
        return sum(row["heap"] + row["indexes"] for row in self.tables.values()) / MB


def settings(base_url: str, day_s: float) -> Mapping[str, str]:
    """A stack with lifetimes of one day of the bench."""
    day, hours = day_s / 3600 / DAY_H, day_s / 3600
    return hosted(
        base_url,
        MEMLANE_RETENTION_DAYS=str(day),
        MEMLANE_IDEMPOTENCY_HOURS=str(hours),
        MEMLANE_DRY_RUN_HOURS=str(hours),
        MEMLANE_AUDIT_DAYS=str(day),
        MEMLANE_SEARCH_SAMPLE_DAYS=str(day),
        MEMLANE_PAST_STATE_DAYS=str(day),
        MEMLANE_PROFILE_DAYS=str(day),
        MEMLANE_ERASURE_DAYS=str(day),
    )


def added(stack: Stack, key: str, user: str, turn: int) -> bytes:
    """A request that adds a turn, with an idempotency key."""
    body = json.dumps({"user_id": user, "messages": [{"role": "user", "content": sentence(turn)}]})
    return (
        f"POST /v3/memories/add/ HTTP/1.1\r\nHost: 127.0.0.1:{stack.port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {user}-{turn}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


class Week:
    """The load and the samples of one week."""

    def __init__(self, stack: Stack, client: Client, connection: Any, day_s: float) -> None:
        self._stack, self._client, self._connection = stack, client, connection
        self._day_s = day_s
        self._users: list[Sequence[str]] = []
        self._events = 0

    async def day(self, number: int) -> Day:
        """Load for the time of a day, erase the users of the day before yesterday, and sample."""
        until, users = time.monotonic() + self._day_s, list[str]()
        erasing = asyncio.create_task(self._erase())
        while time.monotonic() < until and len(users) < self._day_s * USERS_PER_S:
            part = [f"day-{number}-user-{len(users) + n}" for n in range(PART)]
            users += part
            await self._talk(part)
            await idle(self._stack)
        await erasing
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        self._users.append(users)
        await wait_until(self._erased, within_s=300, what="the ends of erasures", every_s=0.5)
        await idle(self._stack)
        await wait_until(self._written, within_s=CAUGHT_UP_S, what="written vectors", every_s=1.0)
        return await self._sample(number)

    async def _talk(self, users: Sequence[str]) -> None:
        key = self._stack.key
        turns = len(users) * (TURNS + SEARCHES)

        def request(number: int) -> bytes:
            user, turn = users[number % len(users)], number // len(users)
            if turn < TURNS:
                return added(self._stack, key, user, turn)
            query = f"Where did I go on trip {turn - TURNS}?"
            return search_request(self._stack.port, key, user=user, query=query)

        run = await send_all(self._stack.port, request, callers=CALLERS, requests=turns)
        assert not run.failures, run.summary()
        self._events += len(users) * TURNS

    async def _erase(self) -> None:
        """Erase the users of the day before yesterday, one after the other."""
        if len(self._users) < 2:
            return
        for user in self._users[-2]:
            answer = await self._client.http.post("/v1/erasures/", json={"user_id": user})
            assert answer.status_code == 200, answer.text

    async def _erased(self) -> bool:
        return bool(await self._connection.fetchval(ERASED) == 0)

    async def _written(self) -> bool:
        return not await self._connection.fetchval(PENDING_VECTORS)

    async def _sample(self, number: int) -> Day:
        rows = await self._connection.fetch(SIZES)
        tables = {row["name"]: {key: row[key] for key in FIGURES} for row in rows}
        memory = await asyncio.to_thread(lambda: dict(programs(self._stack)))
        memory_mb = {name: part["pss_mb"] for name, part in memory.items()}
        return Day(number, self._events, tables, memory_mb)


def report(days: Sequence[Day]) -> str:
    """Tables of sizes, of dead rows, and of memory: a column for each day."""
    head = [f"day {day.number}" for day in days]
    names = sorted(
        (name for name, row in days[-1].tables.items() if _bytes(row) >= SMALL_BYTES),
        key=lambda name: -_bytes(days[-1].tables[name]),
    )
    steady = next(day for day in days if day.number >= min(STEADY_FROM, days[-1].number))
    growth = f"day {days[-1].number} / day {steady.number}"
    sizes = [
        (
            name,
            *(f"{_bytes(day.tables[name]) / MB:.1f}" for day in days),
            _ratio(_bytes(days[-1].tables[name]), _bytes(steady.tables[name])),
        )
        for name in names
    ]
    whole = [f"{day.size_mb:.1f}" for day in days]
    sizes.append(("all tables", *whole, _ratio(days[-1].size_mb, steady.size_mb)))
    rows = [
        (
            name,
            *(f"{day.tables[name]['live']:,} / {day.tables[name]['dead']:,}" for day in days),
            str(days[-1].tables[name]["vacuums"]),
        )
        for name in names
    ]
    memory = [
        (
            name,
            *(f"{day.memory_mb.get(name, 0)}" for day in days),
            _ratio(days[-1].memory_mb[name], steady.memory_mb.get(name, 0)),
        )
        for name in days[-1].memory_mb
    ]
    events = ("events so far", *(f"{day.events:,}" for day in days), "")
    return "\n".join(
        (
            table(("table with indexes, MB", *head, growth), [events, *sizes]),
            table(("rows, live / dead", *head, "autovacuums"), rows),
            table(("memory, MB (PSS)", *head, growth), memory),
        )
    )


def _bytes(row: Mapping[str, int]) -> int:
    return row["heap"] + row["indexes"]


def _ratio(last: float, steady: float) -> str:
    return f"{last / steady:.2f}" if steady else ""


async def main(minutes: float) -> None:
    """Run the week and print the report after each day."""
    day_s = minutes * 60 / DAYS
    with provider() as base_url, tempfile.TemporaryDirectory() as folder:
        async with Stack(Path(folder) / "stack", settings(base_url, day_s)) as stack:
            connection = await asyncpg.connect(database_url(stack))
            days: list[Day] = []
            async with stack.client() as client:
                week = Week(stack, client, connection, day_s)
                with suppress(KeyboardInterrupt):
                    for number in range(1, DAYS + 1):
                        days.append(await week.day(number))
                        print(
                            f"\nload average {os.getloadavg()[0]:.1f}\n{report(days)}", flush=True
                        )
            await connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.week", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    asyncio.run(main(parser.parse_args().minutes))  # noqa: TID251  an entry of its own
