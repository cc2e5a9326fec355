"""Upgrade of a ledger in use: `python -m tests.bench.upgrade`, JSON on stdout.

Fills a database with memories, events and history, starts an API, a worker and a sweeper, and
migrates the database beside them to a release that does not exist (tests.support.next_release: each
kind of step that a migration may have). Measures the longest time that a statement of readers and
writers waits, counts the requests that fail, and compares the books with the rows. `--release` is a
checkout of the release before: schema and processes are those of that release.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from deploy.stack.servers import Postgres, Redis
from pipeline import migrate as migrations
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import migrate
from tests.support.hosts import ROOT, hosts
from tests.support.next_release import FOLDER
from tests.support.recount import drift
from tests.support.stack import Client, Stack, wait_until

OF_LANE = 5
PAUSE_S = 0.05
STARTED_S, ENDED_S, BEFORE_S = 180.0, 600.0, 5.0
ADDERS, REQUEST_PAUSE_S = 4, 0.1
FILL = (
    "SET session_replication_role = replica; SET synchronous_commit = off",
    "INSERT INTO lanes (id, project_id, user_id, accepted_seq, settled_seq, state)"
    " SELECT md5('l' || n)::uuid, '{project}', 'u' || n, {of_lane}, {of_lane}, 'IDLE'"
    " FROM generate_series(1, {lanes}) n",
    "INSERT INTO events (id, project_id, lane_id, seq, status, options, tokens, completed_at)"
    " SELECT md5('e' || n)::uuid, '{project}', md5('l' || ((n - 1) % {lanes} + 1))::uuid,"
    " (n - 1) / {lanes} + 1, 'SUCCEEDED', '{{}}', 1, now() FROM generate_series(1, {memories}) n",
    "INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, terms, attributed_to,"
    " embedding, embedder, projected_version, said_at, valid_from, version)"
    " SELECT md5('m' || n)::uuid, '{project}', md5('l' || ((n - 1) % {lanes} + 1))::uuid,"
    " 'u' || ((n - 1) % {lanes} + 1), 'User likes dish ' || n, decode(md5('t' || n), 'hex'),"
    " ARRAY['user', 'like', 'dish', n::text], 'user', decode(repeat(md5('x' || n), 96), 'hex'),"
    " 'e', 2, now(), now(), 2 FROM generate_series(1, {memories}) n",
    "INSERT INTO memory_history"
    " (memory_id, version, project_id, event, new_text, valid_from, created_at)"
    " SELECT md5('m' || n)::uuid, v, '{project}', 'ADD', 'User likes dish ' || n, now(),"
    " now() - interval '3 day' + v * interval '1 day'"
    " FROM generate_series(1, {memories}) n, generate_series(1, 2) v",
    "INSERT INTO books (project_id, kind, owner, amount)"
    " SELECT '{project}'::uuid, kind, '', amount FROM (VALUES ('SUCCEEDED', {memories}),"
    " ('ADD', {memories}), ('NUMBER', {memories}), ('MEMORY', {memories}), ('users', {lanes}))"
    " line (kind, amount) UNION ALL SELECT '{project}'::uuid, 'user', 'u' || n, {of_lane}"
    " FROM generate_series(1, {lanes}) n",
    "ANALYZE",
)
USES = {
    "write events": "UPDATE events SET tokens = tokens WHERE id = md5('e1')::uuid",
    "write memories": "UPDATE memories SET categories = categories WHERE id = md5('m1')::uuid",
    "write lanes": "UPDATE lanes SET width = width WHERE id = md5('l1')::uuid",
    "read events": "SELECT 1 FROM events WHERE id = md5('e1')::uuid",
    "read memories": "SELECT 1 FROM memories WHERE id = md5('m1')::uuid",
    "read history": "SELECT 1 FROM memory_history WHERE memory_id = md5('m1')::uuid",
    "read projects": "SELECT 1 FROM projects LIMIT 1",
}
OPEN = "SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')"


@dataclass
class Requests:
    """Requests of users to the API: number, failures by reason, longest time by kind."""

    sent: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    longest_s: dict[str, float] = field(default_factory=dict)

    async def send(self, kind: str, request: Awaitable[httpx.Response]) -> None:
        """Count a request."""
        began = time.monotonic()
        try:
            status = (await request).status_code
            reason = "" if status == 200 else str(status)
        except httpx.TransportError as error:
            reason = type(error).__name__
        self.sent += 1
        if reason:
            self.failed[reason] = self.failed.get(reason, 0) + 1
        took_s = round(time.monotonic() - began, 2)
        self.longest_s[kind] = max(self.longest_s.get(kind, 0.0), took_s)


async def measure(
    url: str, broker_url: str, memories: int, folder: Path, release: Path
) -> dict[str, object]:
    """Fill the database, then migrate it beside its users. `release`: code of the processes."""
    settings = {
        "MEMLANE_DATABASE_URL": url,
        "MEMLANE_BROKER_URL": broker_url,
        "MEMLANE_VECTORS": "pgvector",
        "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0",
        "PYTHONPATH": str(release),
    }
    with hosts(folder, settings) as fleet:
        stack = Stack(fleet.start("admin", "migrate"))
        assert await fleet.ended("admin") == 0, fleet.log("admin")
        engine = connect(url, pool_size=2, limits=UNLIMITED)
        await fill(url, memories)
        assert await drift(engine) == []
        fleet.start("web", "api", MEMLANE_PORT=str(stack.port))
        fleet.start("sweeper", "sweeper")
        fleet.start("worker-1", "worker")
        async with stack.client() as client:
            await wait_until(lambda: ready(client), within_s=STARTED_S, what="the API")
            figures = await migrated(url, client)
        wrong = await drift(engine)
        await engine.dispose()
        running = all(process.poll() is None for process in fleet.running.values())
    return {"memories": memories, **figures, "books_wrong": wrong, "processes_run": running}


async def fill(url: str, memories: int) -> None:
    """Insert the rows of a ledger in use, with their books."""
    connection = await asyncpg.connect(url)
    values = {
        "project": await connection.fetchval("SELECT id FROM projects"),
        "memories": memories,
        "lanes": memories // OF_LANE,
        "of_lane": OF_LANE,
    }
    for statement in FILL:
        await connection.execute(statement.format(**values), timeout=1_800)
    await connection.close()


async def ready(client: Client) -> bool:
    try:
        return (await client.http.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


async def migrated(url: str, client: Client) -> dict[str, Any]:
    """Migrate beside statements and requests; return the figures once all events have ended."""
    stopped = asyncio.Event()
    waits, requests = dict.fromkeys(USES, 0.0), Requests()
    users = [asyncio.create_task(use(url, name, waits, stopped)) for name in USES]
    users += [asyncio.create_task(add(client, n, requests, stopped)) for n in range(ADDERS)]
    users.append(asyncio.create_task(search(client, requests, stopped)))
    await asyncio.sleep(BEFORE_S)
    before = {"longest_wait_s": rounded(waits), "longest_request_s": dict(requests.longest_s)}
    for name in waits:
        waits[name] = 0.0
    requests.longest_s.clear()
    began = time.monotonic()
    migrations.VERSIONS = (*migrations.VERSIONS, FOLDER)
    engine = connect(url, pool_size=2, limits=UNLIMITED)
    await migrate(engine)
    took_s = time.monotonic() - began
    await engine.dispose()
    stopped.set()
    await asyncio.gather(*users)
    await all_ended(url)
    return {
        "migration_s": round(took_s, 1),
        "longest_wait_s": rounded(waits),
        "longest_request_s": requests.longest_s,
        "requests": requests.sent,
        "failed_requests": requests.failed,
        "before": before,
    }


def rounded(waits: dict[str, float]) -> dict[str, float]:
    return {name: round(wait_s, 2) for name, wait_s in waits.items()}


async def all_ended(url: str) -> None:
    """Wait until no event is open."""
    connection = await asyncpg.connect(url)

    async def none_open() -> bool:
        return bool(await connection.fetchval(OPEN) == 0)

    await wait_until(none_open, within_s=ENDED_S, what="the end of all events", every_s=0.2)
    await connection.close()


async def add(client: Client, number: int, requests: Requests, stopped: asyncio.Event) -> None:
    """Add a turn again and again."""
    body = {
        "messages": [{"role": "user", "content": f"I own {number} canoes."}],
        "user_id": f"adder-{number}",
    }
    while not stopped.is_set():
        await requests.send("add", client.http.post("/v3/memories/add/", json=body))
        await asyncio.sleep(REQUEST_PAUSE_S)


async def search(client: Client, requests: Requests, stopped: asyncio.Event) -> None:
    """Search again and again."""
    body = {"query": "Which dish?", "filters": {"user_id": "u1"}}
    while not stopped.is_set():
        await requests.send("search", client.http.post("/v3/memories/search/", json=body))
        await asyncio.sleep(REQUEST_PAUSE_S)


async def use(url: str, name: str, waits: dict[str, float], stopped: asyncio.Event) -> None:
    """Execute a statement again and again, and note its longest time in `waits`."""
    connection = await asyncpg.connect(url)
    try:
        while not stopped.is_set():
            began = time.monotonic()
            await connection.execute(USES[name], timeout=3_600)
            waits[name] = max(waits[name], time.monotonic() - began)
            await asyncio.sleep(PAUSE_S)
    finally:
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.upgrade", description=__doc__)
    parser.add_argument("--memories", type=int, default=200_000)
    parser.add_argument("--release", type=Path, default=ROOT, help="checkout of the release before")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Postgres(Path(folder) / "postgres") as server,
        Redis(Path(folder) / "redis") as broker,
        asyncio.Runner() as runner,
    ):
        place = Path(folder) / "hosts"
        place.mkdir()
        release = given.release.resolve()
        figures = runner.run(measure(server.url, broker.url, given.memories, place, release))
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
