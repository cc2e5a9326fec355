"""API, workers and sweeper on several hosts, against external servers.

The setup is that of docs/howto/several-hosts.md, with the commands of compose.yaml and without the
local stack's supervisor.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx

from deploy.stack import ports
from deploy.stack.servers import Chroma, Postgres, Redis
from tests.support.hosts import Hosts, hosts
from tests.support.stack import Client, Stack, wait_until

BLOCKED = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE NOT granted AND relation = 'memories'::regclass AND application_name LIKE 'memlane %'
"""


async def test_hosts_share_the_work_and_any_worker_may_die(
    tmp_path: Path, postgres: Postgres, redis: Redis, chroma: Chroma, database_url: str
) -> None:
    shared = {
        "MEMLANE_DATABASE_URL": database_url,
        "MEMLANE_BROKER_URL": redis.url.removesuffix("/0") + "/9",
        "MEMLANE_CHROMA_URL": chroma.url,
    }
    with hosts(tmp_path, shared) as fleet:
        admin = fleet.start("admin", "migrate")
        assert await fleet.ended("admin") == 0, fleet.log("admin")
        port = ports.choose()
        fleet.start("web", "api", MEMLANE_PORT=str(port))
        fleet.start("sweeper", "sweeper")
        for worker in ("worker-1", "worker-2"):
            await start_worker(fleet, worker)
        async with Client(Stack(admin, port=port)) as client:
            await wait_until(lambda: answers(client), within_s=60, what="an API that is ready")
            first = await client.ended(await client.add("maya", "I live in Turku."))
            assert first["status"] == "SUCCEEDED"
            answer = await client.search("maya", "Where does Maya live?")
            assert "Turku" in answer["results"][0]["memory"]
            await a_worker_dies(fleet, client, database_url)
            await a_worker_drains(fleet, client, database_url)
        for host in ("web", "sweeper"):
            fleet.send(host, signal.SIGTERM)
        assert await fleet.ended("sweeper") == 0, fleet.log("sweeper")
        # After its shutdown, uvicorn ends itself with the same signal.
        assert await fleet.ended("web") == -signal.SIGTERM, fleet.log("web")
        assert "Application shutdown complete" in fleet.log("web")


async def a_worker_dies(fleet: Hosts, client: Client, database_url: str) -> None:
    """kill -9 in the middle of an event's commit: another host completes the event."""
    async with memories_locked(database_url) as connection:
        event_id = await client.add("kaj", "I own a canoe.")
        host = await blocked_host(connection)
        fleet.send(host, signal.SIGKILL)
        assert await fleet.ended(host) == -signal.SIGKILL
    event = await client.ended(event_id)
    assert (event["status"], [row["event"] for row in event["results"]]) == ("SUCCEEDED", ["ADD"])
    assert len(await client.memories("kaj")) == 1


async def a_worker_drains(fleet: Hosts, client: Client, database_url: str) -> None:
    """SIGTERM during a commit: the worker finishes its stage and exits; the next one goes on."""
    async with memories_locked(database_url) as connection:
        event_id = await client.add("ida", "I play the cello.")
        host = await blocked_host(connection)
        fleet.send(host, signal.SIGTERM)
    assert await fleet.ended(host) == 0, fleet.log(host)
    assert len(await client.memories("ida")) == 1
    await start_worker(fleet, "worker-3")
    assert (await client.ended(event_id))["status"] == "SUCCEEDED"
    fleet.send("worker-3", signal.SIGTERM)
    assert await fleet.ended("worker-3") == 0, fleet.log("worker-3")


async def start_worker(fleet: Hosts, host: str) -> None:
    port = ports.choose()
    fleet.start(host, "worker", MEMLANE_PROBE_PORT=str(port))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as probe:
        await wait_until(lambda: is_ready(probe), within_s=60, what=f"a ready worker on {host}")
        assert (await probe.get("/livez")).status_code == 200
        assert "memlane_stage_seconds" in (await probe.get("/metrics")).text


async def answers(client: Client) -> bool:
    return await is_ready(client.http)


async def is_ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


@asynccontextmanager
async def memories_locked(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Lock the table of memories: readers continue, writers wait until the lock is released."""
    connection = await asyncpg.connect(database_url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("LOCK TABLE memories IN EXCLUSIVE MODE")
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


async def blocked_host(connection: asyncpg.Connection) -> str:
    """The host whose worker waits to write a memory."""
    names: list[str] = []

    async def blocked() -> bool:
        names[:] = [row[0] for row in await connection.fetch(BLOCKED)]
        return bool(names)

    await wait_until(blocked, within_s=30, what="a worker that writes a memory")
    return names[0].rpartition(" ")[2]
