"""The console at size: `python -m tests.bench.console`, JSON on stdout and in bench-results/.

50,000 memories, 100,000 events and a graph of 500 entities, on a stack of its own. For each page:
seconds until its bytes are there, and until a browser has painted its first content. Then the CPU
time of five open consoles that update themselves, beside that of an accepted add.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import uvloop

from tests.bench.engine import IN_FLIGHT, cpu_s, pause
from tests.bench.growth.fill import fill
from tests.bench.load import closed_loop
from tests.support.chaos_ledger import database_url
from tests.support.chromium import chromium, tab
from tests.support.stack import Stack, wait_until

LANES, NODES = 10_000, 500
PAGES = (
    *("live", "events", "failures", "trends", "costs", "health", "memories", "inbox", "graph"),
    *("playground", "replays", "webhooks", "verify", "erasures", "user-tokens", "audit", "admin"),
    *("events?status=FAILED", "events?user_id=u7", "memories?user_id=u7"),
    *("memories?keywords=dish", "graph?user_id=u1", "search?q=dish&user_id=u7"),
)
CONSOLES, ROUNDS, ADDS, SECONDS = 5, 4, 1_000, 20.0
RESULTS = Path("bench-results")
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"

# A star of entities in the first scope, whose user entity is in its middle.
NODE_ROWS = """
INSERT INTO entities (id, project_id, lane_id, name, name_key, kind, plain_name)
SELECT md5('p' || n)::uuid, e.project_id, e.lane_id, 'place ' || n, 'place ' || n, 'place',
    'place ' || n
FROM generate_series(1, $1) n, (SELECT * FROM entities WHERE id = md5('n1')::uuid) e
"""
RELATION_ROWS = """
INSERT INTO relations (id, project_id, lane_id, source_id, relation, destination_id, event_id,
    memory_id, valid_from)
SELECT md5('v' || n)::uuid, r.project_id, r.lane_id,
    CASE WHEN n % 3 = 0 THEN r.source_id ELSE md5('p' || n / 3 * 3 + 1)::uuid END,
    'likes', md5('p' || n)::uuid, r.event_id, r.memory_id, now()
FROM generate_series(1, $1) n, (SELECT * FROM relations WHERE id = md5('q1')::uuid) r
"""


async def fill_project(stack: Stack) -> None:
    """Fill the ledger, and the graph of its first scope."""
    url = database_url(stack)
    connection = await asyncpg.connect(url)
    try:
        await fill(url, await connection.fetchval("SELECT id FROM projects"), lanes=LANES)
        for query in (NODE_ROWS, RELATION_ROWS):
            await connection.execute(query, NODES)
        await connection.execute("ANALYZE entities, relations")
    finally:
        await connection.close()


@asynccontextmanager
async def signed_in(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, timeout=60) as client:
        await client.post("/console/sign-in", data={"key": stack.key})
        yield client


async def pages(stack: Stack) -> dict[str, dict[str, float]]:
    """Milliseconds of each page: its bytes, the median of 15; and the first paint, of 5."""
    figures: dict[str, dict[str, float]] = {}
    async with (
        signed_in(stack) as client,
        chromium() as browser,
        tab(browser, stack.url, stack.key) as opened,
    ):
        for page in PAGES:
            seconds = []
            for _ in range(15):
                begun = time.perf_counter()
                answer = await client.get(f"/console/{page}")
                seconds.append(time.perf_counter() - begun)
                assert answer.status_code == 200, (page, answer.text[:500])
            paints = []
            for _ in range(5):
                await opened.open(f"/console/{page}")
                paints.append(await opened.page.evaluate(PAINTED))
            figures[page] = {
                "bytes_ms": round(1000 * statistics.median(seconds), 1),
                "worst_bytes_ms": round(1000 * max(seconds), 1),
                "paint_ms": round(statistics.median(paints), 1),
                "kilobytes": round(len(answer.content) / 1000, 1),
            }
    return figures


async def open_consoles(stack: Stack, stop: asyncio.Event) -> None:
    """Five Live pages: each asks every five seconds, as its script does."""

    async def one() -> None:
        async with signed_in(stack) as client:
            while not stop.is_set():
                await client.get("/console/live", headers={"HX-Request": "true"})
                with suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await stop.wait()

    await asyncio.gather(*(one() for _ in range(CONSOLES)))


async def accept(stack: Stack) -> dict[str, Any]:
    """The CPU time of all processes that five open consoles take from the accept path.

    An accepted add costs CPU, and so does a second of open consoles. On a saturated machine the
    consoles displace as many adds as their CPU time could pay for. Wall-clock rates of adds differ
    by 20 % from turn to turn on a shared machine, so they cannot show a few percent.
    The workers are paused.
    """
    await idle_filled(stack)
    await pause(stack, True)
    shares: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(2 * ROUNDS):
        name = ("without", "with", "with", "without")[turn % 4]
        stop = asyncio.Event()
        watching = asyncio.create_task(open_consoles(stack, stop)) if name == "with" else None
        shares[name].append(await cpu_share(stack, SECONDS))
        stop.set()
        if watching:
            await watching
    before = sum(cpu_s(stack).values())
    await closed_loop(stack.port, stack.key, callers=8, requests=ADDS, label="load")
    add_ms = 1000 * (sum(cpu_s(stack).values()) - before) / ADDS
    await pause(stack, False)
    consoles = statistics.median(shares["with"]) - statistics.median(shares["without"])
    return {
        "idle_cores": round(statistics.median(shares["without"]), 4),
        "consoles_cores": round(consoles, 4),
        "add_cpu_ms": round(add_ms, 2),
        "adds_displaced_per_s": round(1000 * consoles / add_ms, 1),
        "cost_percent": round(100 * consoles / (os.cpu_count() or 1), 2),
    }


async def cpu_share(stack: Stack, seconds: float) -> float:
    """CPU seconds a second of all processes of the stack, over `seconds`."""
    before, began = sum(cpu_s(stack).values()), time.monotonic()
    await asyncio.sleep(seconds)
    return (sum(cpu_s(stack).values()) - before) / (time.monotonic() - began)


async def idle_filled(stack: Stack) -> None:
    """Return once no event is in flight."""
    connection = await asyncpg.connect(database_url(stack))

    async def all_ended() -> bool:
        return not await connection.fetchval(IN_FLIGHT)

    await wait_until(all_ended, within_s=600, what="no event is in flight")
    await connection.close()


async def measure(only: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with Stack(Path(folder) / "stack") as stack:
            await fill_project(stack)
            halves = {"pages": pages, "accept": accept}
            return {
                name: await half(stack) for name, half in halves.items() if only in (None, name)
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("pages", "accept"), help="measure one half")
    figures = uvloop.run(measure(parser.parse_args().only))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "console.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(json.dumps(figures, indent=1))
