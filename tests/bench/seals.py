"""Rate of sealing, and CPU time of an idle stack: `python -m tests.bench.seals`, JSON on stdout.

Fills a project with scopes of three events, switches its tamper evidence on, and waits until the
sweeper has sealed all of them. Then the stack has nothing to do, and the CPU time of each program
is measured. PostgreSQL's is that of its processes by the program that they serve, so that ticks of
the sweeper show with what they cost the database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from tests.support.chaos_ledger import database_url
from tests.support.stack import Client, Stack, wait_until

EVENTS_EACH = 3
# Tokens of an event that the bench has made.
MARK = 20
PROJECT = "/api/v1/orgs/organizations/{organization}/projects/{id}/"
FILL = (
    "SET session_replication_role = replica; SET synchronous_commit = off",
    "INSERT INTO lanes (id, project_id, user_id, accepted_seq, settled_seq, state)"
    " SELECT md5('lane' || n)::uuid, '{project}', 'user' || n, {events}, {events}, 'IDLE'"
    " FROM generate_series(1, {scopes}) n",
    "INSERT INTO events (id, project_id, lane_id, seq, status, options, tokens, completed_at)"
    " SELECT gen_random_uuid(), '{project}', md5('lane' || n)::uuid, e, 'SUCCEEDED', '{{}}',"
    " {mark}, now() FROM generate_series(1, {scopes}) n, generate_series(1, {events}) e",
    "INSERT INTO messages (lane_id, seq, ordinal, role, content, said_at)"
    " SELECT lane_id, seq, 0, 'user', 'I like dish ' || seq, now() FROM events"
    " WHERE tokens = {mark}",
    "ANALYZE",
)
COMPLETE = (
    "SELECT state = 'complete' AND NOT EXISTS (SELECT FROM seal_queue) FROM seal_projects"
    " WHERE project_id = $1"
)
CONNECTIONS = "SELECT pid, application_name FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


async def measure(stack: Stack, scopes: int, settle_s: float, idle_s: float) -> dict[str, Any]:
    """Seal the scopes, then measure the idle stack."""
    connection = await asyncpg.connect(database_url(stack), timeout=60)
    try:
        async with stack.client() as client:
            sealing = await sealed(client, connection, scopes)
        await asyncio.sleep(settle_s)
        return sealing | {"idle_share_of_a_core_percent": await idle(stack, connection, idle_s)}
    finally:
        await connection.close()


async def sealed(
    client: Client, connection: asyncpg.Connection[Any], scopes: int
) -> dict[str, float]:
    """Fill the project, switch its tamper evidence on, and wait until all is sealed."""
    await client.ended(await client.add("first", "I live in Lisbon."))
    ids = (await client.http.get("/v1/ping/")).json()
    project = ids["project_id"]
    for statement in FILL:
        values = {"project": project, "events": EVENTS_EACH, "scopes": scopes, "mark": MARK}
        await connection.execute(statement.format(**values), timeout=600)
    path = PROJECT.format(organization=ids["org_id"], id=project)
    began = time.monotonic()
    answer = await client.http.patch(path, json={"tamper_evidence": True})
    assert answer.status_code == 200, answer.text

    async def complete() -> bool:
        return bool(await connection.fetchval(COMPLETE, project))

    await wait_until(complete, within_s=3_600, what="all scopes are sealed", every_s=0.5)
    took_s = time.monotonic() - began
    heads = await connection.fetchval("SELECT count(*) FROM seal_heads WHERE number > 0")
    assert heads > scopes, f"{heads} heads"
    return {"scopes": scopes, "sealed_s": round(took_s, 1), "scopes_per_s": round(scopes / took_s)}


async def idle(
    stack: Stack, connection: asyncpg.Connection[Any], seconds: float
) -> dict[str, float]:
    """CPU time of each program, in percent of a core."""
    before = await _cpu_s(stack, connection)
    await asyncio.sleep(seconds)
    after = await _cpu_s(stack, connection)
    used: defaultdict[str, float] = defaultdict(float)
    for (name, pid), cpu_s in after.items():
        used[name] += 100 * (cpu_s - before.get((name, pid), 0.0)) / seconds
    used["all"] = sum(used.values())
    return {name: round(used[name], 2) for name in sorted(used, key=lambda name: -used[name])}


async def _cpu_s(stack: Stack, connection: asyncpg.Connection[Any]) -> dict[tuple[str, int], float]:
    """CPU time by program and pid of all processes of a stack."""
    clients = {row["pid"]: row["application_name"] for row in await connection.fetch(CONNECTIONS)}
    names = {pid: name for name, pid in stack.pids().items()}
    supervisor = psutil.Process(stack.pid("api")).parent()
    assert supervisor is not None
    times = {}
    for process in (supervisor, *supervisor.children(recursive=True)):
        owner = next((names[p.pid] for p in (process, *process.parents()) if p.pid in names), None)
        name = owner or "supervisor"
        if process.pid in clients:
            name = f"postgres for {program(clients[process.pid])}"
        times[name, process.pid] = sum(process.cpu_times()[:2])
    return times


def program(application: str) -> str:
    """The program of a connection: the last word of its name; "itself" without a name."""
    return (application.split() or ["itself"])[-1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.seals", description=__doc__)
    parser.add_argument("--scopes", type=int, default=200_000)
    parser.add_argument("--settle-s", type=float, default=75.0, help="before the idle measurement")
    parser.add_argument("--idle-s", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"MEMLANE_SEAL_KEY": secrets.token_hex(32)}
        with Stack(Path(folder) / "stack", settings) as stack, asyncio.Runner() as runner:
            run = measure(stack, given.scopes, given.settle_s, given.idle_s)
            print(json.dumps(runner.run(run), indent=2))


if __name__ == "__main__":
    main()
