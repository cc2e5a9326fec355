"""The console at size: `python -m tests.bench.console`, JSON on stdout and in bench-results/.

10,000 memories, 100,000 events and a graph of 500 entities, on a stack of its own. For each page:
seconds until its bytes are there, and until a browser has painted its first content. Then the
accept path, by turns without a console and with five open ones that update themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import uvloop
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.bench.load import closed_loop
from tests.e2e.test_first_minutes import database_url
from tests.support.chromium import chromium, tab
from tests.support.engine import build_ledger
from tests.support.stack import Stack

MEMORIES, EVENTS, NODES, USERS = 10_000, 100_000, 500, 100
PAGES = (
    *("live", "events", "failures", "trends", "costs", "health", "memories", "inbox", "graph"),
    *("playground", "replays", "webhooks", "verify", "erasures", "user-tokens", "audit", "admin"),
    *("events?status=FAILED", "events?user_id=size-7", "memories?user_id=size-7"),
    *("memories?keywords=trail", "graph?user_id=size-0", "search?q=trail&user_id=size-7"),
)
CONSOLES, ROUNDS, ADDS = 5, 6, 400
RESULTS = Path("bench-results")
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"

# Copies of the rows of one event, with other ids, texts and times.
LANES = """
INSERT INTO lanes SELECT (jsonb_populate_record(l, jsonb_build_object(
    'id', gen_random_uuid(), 'user_id', 'size-' || n, 'state', 'IDLE',
    'accepted_seq', 0, 'settled_seq', 0))).*
FROM lanes l, generate_series(0, CAST(:users AS int) - 1) n WHERE l.user_id = 'first'
"""
EVENT_ROWS = """
INSERT INTO events SELECT (jsonb_populate_record(e, jsonb_build_object(
    'id', gen_random_uuid(), 'lane_id', l.id, 'seq', n.n / CAST(:users AS int) + 1,
    'batch_id', gen_random_uuid(),
    'status', CASE WHEN n.n % 50 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
    'failure_code', CASE WHEN n.n % 50 = 0 THEN 'LLM_BAD_OUTPUT' END,
    'created_at', now() - n.n * interval '7 seconds',
    'completed_at', now() - n.n * interval '7 seconds' + interval '1 second'))).*
FROM events e
JOIN generate_series(0, CAST(:events AS int) - 1) n ON e.id = CAST(:event_id AS uuid)
JOIN (SELECT id, row_number() OVER (ORDER BY user_id) - 1 AS place FROM lanes
      WHERE user_id LIKE 'size-%') l ON l.place = n.n % CAST(:users AS int)
"""
MEMORY_ROWS = """
INSERT INTO memories SELECT (jsonb_populate_record(m, jsonb_build_object(
    'id', gen_random_uuid(), 'lane_id', l.id, 'user_id', l.user_id,
    'text', 'User likes walking trail ' || n.n, 'text_hash', sha256(CAST(n.n AS text)::bytea),
    'created_at', now() - n.n * interval '60 seconds', 'slot', NULL))).*
FROM memories m
JOIN generate_series(0, CAST(:memories AS int) - 1) n ON m.user_id = 'first'
JOIN (SELECT id, user_id, row_number() OVER (ORDER BY user_id) - 1 AS place FROM lanes
      WHERE user_id LIKE 'size-%') l ON l.place = n.n % CAST(:users AS int)
"""
NODE_ROWS = """
INSERT INTO entities SELECT (jsonb_populate_record(e, jsonb_build_object(
    'id', gen_random_uuid(), 'lane_id', l.id, 'name', 'Place ' || n, 'key', 'place ' || n))).*
FROM (SELECT * FROM entities LIMIT 1) e, generate_series(1, CAST(:nodes AS int)) n,
     (SELECT id FROM lanes WHERE user_id = 'size-0') l
"""
RELATION_ROWS = """
INSERT INTO relations SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', gen_random_uuid(), 'lane_id', l.id, 'source_id', a.id, 'target_id', b.id))).*
FROM (SELECT * FROM relations LIMIT 1) r, (SELECT id FROM lanes WHERE user_id = 'size-0') l,
     (SELECT id, row_number() OVER (ORDER BY id) AS n FROM entities WHERE name LIKE 'Place %') a
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM entities WHERE name LIKE 'Place %') b
  ON b.n = (a.n * 7) % CAST(:nodes AS int) + 1
"""


async def fill(stack: Stack, event_id: str) -> None:
    """Copy the rows of the first event until the store has its size."""
    ledger = build_ledger(database_url(stack))
    values = {"users": USERS, "events": EVENTS, "memories": MEMORIES, "nodes": NODES}
    async with ledger.long.begin() as connection:
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        for query in (LANES, EVENT_ROWS, MEMORY_ROWS, NODE_ROWS, RELATION_ROWS):
            await _run(connection, query, values | {"event_id": UUID(event_id)})
        settled = "UPDATE lanes SET accepted_seq = :n, settled_seq = :n WHERE user_id LIKE 'size-%'"
        await connection.execute(text(settled), {"n": EVENTS // USERS})
    await ledger.books.fold()
    async with ledger.long.connect() as connection:
        single = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await single.execute(text("ANALYZE"))
    await ledger.close()


async def _run(connection: AsyncConnection, query: str, values: dict[str, Any]) -> None:
    named = {name: value for name, value in values.items() if f":{name} " in query}
    await connection.execute(text(query), named)


async def signed_in(stack: Stack) -> httpx.AsyncClient:
    client = httpx.AsyncClient(base_url=stack.url, timeout=60)
    await client.post("/console/sign-in", data={"key": stack.key})
    return client


async def pages(stack: Stack) -> dict[str, dict[str, float]]:
    """Milliseconds of each page: its bytes, the median of 15; and the first paint, of 5."""
    figures: dict[str, dict[str, float]] = {}
    client = await signed_in(stack)
    async with client, chromium() as browser, tab(browser, stack.url, stack.key) as opened:
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
    """Five Live pages: each asks every two seconds, as its script does."""

    async def one() -> None:
        async with await signed_in(stack) as client:
            while not stop.is_set():
                await client.get("/console/live", headers={"HX-Request": "true"})
                await asyncio.sleep(2)

    await asyncio.gather(*(one() for _ in range(CONSOLES)))


async def accept(stack: Stack) -> dict[str, Any]:
    """Adds a second without and with open consoles, by turns."""
    rates: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(2 * ROUNDS):
        name = ("without", "with")[turn % 2]
        stop = asyncio.Event()
        watching = asyncio.create_task(open_consoles(stack, stop)) if name == "with" else None
        await asyncio.sleep(2)
        done = await closed_loop(
            stack.port, stack.key, callers=8, requests=ADDS, label=f"load-{turn}"
        )
        rates[name].append(done.summary()["per_s"])
        stop.set()
        if watching:
            await watching
    ratio = statistics.median(rates["with"]) / statistics.median(rates["without"])
    return rates | {"cost_percent": round(100 * (1 - ratio), 1)}


async def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with Stack(Path(folder) / "stack") as stack, stack.client() as client:
            event_id = await client.add("first", "My sister Ines works at Siemens.")
            await client.http.get(f"/v1/event/{event_id}/", params={"wait": 60})
            await fill(stack, event_id)
            return {"pages": await pages(stack), "accept": await accept(stack)}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    figures = uvloop.run(measure())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "console.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(json.dumps(figures, indent=1))
