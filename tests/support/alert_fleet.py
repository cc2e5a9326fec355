"""A fleet whose parts can be stopped one by one: servers, API, worker, sweeper, model, receiver."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx

from deploy.stack import ports
from deploy.stack.servers import Chroma, Postgres, Redis
from tests.support.bolt_server import ArcadeDB
from tests.support.hosts import Hosts, hosts
from tests.support.llm_server import LLMServer
from tests.support.receiver import WebhookReceiver
from tests.support.stack import Client, Stack, wait_until

STARTED_S, REPAIRED_S = 120.0, 180.0
# Seconds that an event may wait for a provider.
BUDGET_S = 30
OPEN = "SELECT count(*) FROM events WHERE status IN ('PENDING', 'RUNNING')"
SERVICES = ("api", "worker", "sweeper")


@dataclass
class AlertFleet:
    """The servers and processes. `webhook_status`: answer of the receiver of webhooks."""

    postgres: Postgres
    redis: Redis
    chroma: Chroma
    graph: ArcadeDB
    llm: LLMServer
    fleet: Hosts
    ports: dict[str, int] = field(
        default_factory=lambda: {service: ports.choose() for service in SERVICES}
    )
    webhook_status: int = 200
    client: Client | None = None
    _names: dict[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> Sequence[str]:
        """Addresses with metrics, for Prometheus."""
        return [f"127.0.0.1:{port}" for port in self.ports.values()]

    async def start(self, service: str, **settings: str) -> None:
        """Start the process of a service and wait until it is ready."""
        port = self.ports[service]
        variable = "MEMLANE_PORT" if service == "api" else "MEMLANE_PROBE_PORT"
        self._names[service] = name = f"{service}-{uuid4().hex[:6]}"
        self.fleet.start(name, service, **{variable: str(port)}, **settings)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:

            async def ready() -> bool:
                try:
                    return (await http.get("/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await wait_until(ready, within_s=STARTED_S, what=f"a ready {service}", every_s=0.1)

    async def kill(self, service: str) -> None:
        """Kill the process of a service with SIGKILL."""
        name = self._names[service]
        self.fleet.send(name, signal.SIGKILL)
        await self.fleet.ended(name)

    async def post_add(self, text: str, user: str) -> httpx.Response:
        """Add a turn."""
        assert self.client is not None
        messages = [{"role": "user", "content": text}]
        body = {"messages": messages, "user_id": user}
        return await self.client.http.post("/v3/memories/add/", json=body)

    async def add(self, text: str = "I live in Turku.") -> None:
        """Add a turn of a new user, which must be accepted."""
        answer = await self.post_add(text, uuid4().hex)
        assert answer.status_code == 200, answer.text

    async def search(self, query: str) -> None:
        """Search the memories of a user."""
        assert self.client is not None
        body = {"query": query, "filters": {"user_id": "u1"}}
        await self.client.http.post("/v3/memories/search/", json=body)

    async def value(self, statement: str, *values: object) -> Any:
        """Run a statement in the database and return its first value."""
        connection = await asyncpg.connect(self.postgres.url)
        try:
            return await connection.fetchval(statement, *values)
        finally:
            await connection.close()

    async def repaired(self) -> None:
        """Wait until all events have ended."""

        async def none_open() -> bool:
            return bool(await self.value(OPEN) == 0)

        await wait_until(none_open, within_s=REPAIRED_S, what="no open event", every_s=0.2)

    async def prepare(self, client: Client, webhook_url: str) -> None:
        """Give the project tamper evidence and a webhook."""
        self.client = client
        ping = (await client.http.get("/v1/ping/")).json()
        project = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
        switched = await client.http.patch(project, json={"tamper_evidence": True})
        assert switched.status_code == 200, switched.text
        body = {"name": "alerts", "url": webhook_url, "event_types": ["memory_add"]}
        path = f"/api/v1/webhooks/projects/{ping['project_id']}/"
        made = await client.http.post(path, json=body)
        assert made.status_code in (200, 201), made.text


@asynccontextmanager
async def alert_fleet(root: Path) -> AsyncIterator[AlertFleet]:
    """A running fleet whose parts all work."""
    async with AsyncExitStack() as running:
        servers = running.enter_context(ExitStack())
        postgres = servers.enter_context(Postgres(root / "postgres"))
        redis = servers.enter_context(Redis(root / "redis"))
        chroma = servers.enter_context(Chroma(root / "chroma"))
        graph = servers.enter_context(ArcadeDB(root / "graph"))
        llm = await running.enter_async_context(LLMServer())
        place = root / "hosts"
        place.mkdir()
        settings = {
            "MEMLANE_DATABASE_URL": postgres.url,
            "MEMLANE_BROKER_URL": redis.url,
            "MEMLANE_CHROMA_URL": chroma.url,
            "MEMLANE_GRAPH_STORE": "bolt",
            "MEMLANE_BOLT_URL": graph.address.url,
            "MEMLANE_BOLT_USER": str(graph.address.user),
            "MEMLANE_BOLT_PASSWORD": str(graph.address.password),
            "MEMLANE_BOLT_DATABASE": str(graph.address.database),
            "MEMLANE_LLM__MODEL": "openai/stand-in",
            "MEMLANE_LLM__API_BASE": llm.base_url,
            "MEMLANE_LLM__API_KEY": "none",
            "MEMLANE_OUTAGE_BUDGET_S": str(BUDGET_S),
            "MEMLANE_SEAL_KEY": secrets.token_hex(32),
            "MEMLANE_WEBHOOK_PRIVATE": "on",
            "MEMLANE_WEBHOOK_TRIES": "1",
            "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0",
        }
        processes = running.enter_context(hosts(place, settings))
        fleet = AlertFleet(postgres, redis, chroma, graph, llm, processes)
        receiver = WebhookReceiver(lambda _id, _try: fleet.webhook_status)
        await running.enter_async_context(receiver)
        admin = processes.start("admin", "migrate")
        assert await processes.ended("admin") == 0, processes.log("admin")
        await asyncio.gather(*(fleet.start(service) for service in SERVICES))
        stack = Stack(admin, port=fleet.ports["api"])
        client = await running.enter_async_context(stack.client())
        await fleet.prepare(client, receiver.url)
        await fleet.add()
        await fleet.repaired()
        yield fleet
