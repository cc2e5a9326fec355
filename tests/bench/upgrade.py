"""Upgrade of a ledger in use: `python -m tests.bench.upgrade`, JSON on stdout.

Fills a database with memories, events and history, migrates it to a release that does not exist
(tests.support.next_release: each kind of step that a migration may have) beside readers and
writers, and measures the longest time that one of their statements waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import asyncpg

from deploy.stack.servers import Postgres
from pipeline import migrate as migrations
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import migrate
from tests.support.next_release import FOLDER

OF_LANE = 5
PAUSE_S = 0.05
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


async def measure(url: str, memories: int) -> dict[str, object]:
    """Fill the database, then migrate it beside its users."""
    engine = connect(url, pool_size=2, limits=UNLIMITED)
    await migrate(engine)
    plain = url.replace("+asyncpg", "")
    filler = await asyncpg.connect(plain)
    values = {
        "project": uuid4(),
        "memories": memories,
        "lanes": memories // OF_LANE,
        "of_lane": OF_LANE,
    }
    for statement in FILL:
        await filler.execute(statement.format(**values), timeout=900)
    await filler.close()
    stopped = asyncio.Event()
    waits = dict.fromkeys(USES, 0.0)
    users = [asyncio.create_task(use(plain, name, waits, stopped)) for name in USES]
    began = time.monotonic()
    migrations.VERSIONS = (*migrations.VERSIONS, FOLDER)
    await migrate(engine)
    took_s = time.monotonic() - began
    stopped.set()
    await asyncio.gather(*users)
    await engine.dispose()
    longest = {name: round(wait_s, 2) for name, wait_s in waits.items()}
    return {
        "memories": memories,
        "migration_s": round(took_s, 1),
        "longest_wait_s": longest,
    }


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
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Postgres(Path(folder) / "postgres") as server,
        asyncio.Runner() as runner,
    ):
        figures = runner.run(measure(server.url, given.memories))
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
