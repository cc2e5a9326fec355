"""Requests and background statements whose cost must not grow with the ledger.

The API runs in this process over a filled ledger; jobs are calls of the sweeper's statements. Each
runs several times; the best time counts, and the most rows that one node of a plan reads.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, text

from pipeline.curator.store import RunLimits
from pipeline.domain.tenants import Access, ProjectId
from pipeline.lanes.load import LoadView
from pipeline.ledger.tables import api_keys
from pipeline.stores import Ledger
from pipeline.tenants.secret import Secret
from tests.bench.growth.fill import VECTOR_BYTES
from tests.support.api_service import Service, serving
from tests.support.engine import build_ledger
from tests.support.explained import explaining

RUNS = 5
Figures = Mapping[str, Mapping[str, float]]
GETS = {
    "events, project": "/v1/events/",
    "events of a user": "/v1/events/?user_id=u77",
    "events of an agent": "/v1/events/?agent_id=helper",
    "events, FAILED": "/v1/events/?status=FAILED",
    "events by code": "/v1/events/?code=LLM_UNAVAILABLE",
    "events by graph status": "/v1/events/?graph_status=PARTIAL",
    "history feed": "/v1/memories/events/",
    "memories of a user": "/v1/memories/?user_id=u77",
    "memories of an app, 10 %": "/v1/memories/?app_id=web",
    "memories of an agent, 33 %": "/v1/memories/?agent_id=helper",
    "memories of a user, as_of": "/v1/memories/?user_id=u77&as_of={hour_ago}",
    "memories of a user, valid_at": "/v1/memories/?user_id=u77&valid_at={hour_ago}",
    "changes of the project, 1 h": "/v1/changes/?from={hour_ago}",
    "changes of an app, 1 h": "/v1/changes/?from={hour_ago}&app_id=web",
    "changes of a user, 1 h": "/v1/changes/?from={hour_ago}&user_id=u77",
    "entities, 100": "/v1/entities/?page_size=100",
    "one entity": "/v2/entities/user/u77/",
    "stats": "/v1/stats/",
    "categories": "/v1/entities/filters/",
    "graph of a user": "/v1/graph/?user_id=u77",
    "graph of an agent": "/v1/graph/?agent_id=helper",
    "events of an app": "/v1/events/?app_id=web",
    "events of an old app": "/v1/events/?app_id=old",
    "summary of a user": "/v1/summaries/?user_id=u77",
    "audit log": "/v1/audit/",
    "suggestions, OPEN": "/v1/suggestions/?state=OPEN",
    "conflicts": "/v1/conflicts/",
    "curator runs": "/v1/curator/runs/",
}
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "search, user": {"user_id": "u77"},
    "search, app, 10 %": {"app_id": "web"},
    "search, agent, 33 %": {"agent_id": "helper"},
}
LISTS: Mapping[str, Mapping[str, Any]] = {'memories of "*"': {"user_id": "*"}}


@dataclass(frozen=True)
class Server:
    """The API over a filled ledger, with a key of the filled project."""

    service: Service
    ledger: Ledger
    project_id: ProjectId
    key: str

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Send a request. Errors: RuntimeError for a response that is no success."""
        headers = {"Authorization": f"Token {self.key}"}
        answer = await self.service.client.request(method, path, json=body, headers=headers)
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")

    def work(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """All measured requests and jobs by name."""
        hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()  # noqa: TID251  a query
        hour_ago = hour_ago.replace("+00:00", "Z")
        ledger, engine = self.ledger, self.service.engine
        load = LoadView(ledger.engine)

        async def added() -> None:
            await self.send("POST", "/v3/memories/add/", ADD | {"user_id": f"new {uuid4()}"})

        async def claimed() -> None:
            await engine.claim(engine.hints.waiting.popleft())

        work: dict[str, Callable[[], Awaitable[object]]] = {
            "add, new scope": added,
            "add, known scope": lambda: self.send(
                "POST", "/v3/memories/add/", ADD | {"user_id": "u78"}
            ),
            "claim of a lane": claimed,
        }
        for name, path in GETS.items():
            url = path.format(hour_ago=hour_ago)
            work[name] = lambda url=url: self.send("GET", url)  # type: ignore[misc]
        for name, filters in LISTS.items():
            work[name] = lambda filters=filters: self.send(  # type: ignore[misc]
                "POST", "/v3/memories/", {"filters": filters}
            )
        for name, filters in SEARCHES.items():
            body = {"query": "dish number 77", "filters": filters}
            work[name] = lambda body=body: self.send(  # type: ignore[misc]
                "POST", "/v3/memories/search/", body
            )
        return work | {
            "sweep": lambda: ledger.due_lanes.sweep(limit=1_000),
            "load of the gate": lambda: load.look(scope_events=100),
            "load of the sweeper": load.lanes,
            "schedule of the curator": lambda: ledger.curator.schedule(
                RunLimits(10, 1_000), limit=20
            ),
            "due summaries": lambda: ledger.summaries.claim_due(limit=100, lease_s=300),
            "retention": engine.retention.forget_keys,
            "figures of /metrics": ledger.balance.totals,
        }


ADD: dict[str, Any] = {"messages": [{"role": "user", "content": "I like tea."}]}


async def measure(
    url: str, project_id: UUID, *, runs: int = RUNS, only: Collection[str] | None = None
) -> Figures:
    """Milliseconds and rows of each request and job over the filled project, or of some."""
    ledger = build_ledger(url)
    figures: dict[str, dict[str, float]] = {}
    try:
        async with serving(ledger, dimensions=VECTOR_BYTES // 4) as service:
            # The tests' client compares each response with the description of the API, which takes
            # several times as long as the response itself.
            service.client.event_hooks = {}
            key = await _key(ledger, project_id)
            own = replace(service.engine.project, id=ProjectId(project_id))
            service.engine.project = own
            server = Server(service, ledger, ProjectId(project_id), key)
            work = server.work()
            if only is not None:
                work = {name: run for name, run in work.items() if name in only}
            for name, run in work.items():
                figures[name] = {"ms": await _best_ms(run, runs)}
            with explaining(ledger.engine, ledger.pools.adds) as recorder:
                for engine in (ledger.engine, ledger.pools.adds):
                    await engine.dispose()
                for name, run in work.items():
                    await run()
                    plans = await recorder.taken()
                    figures[name]["rows"] = max((plan.read for plan in plans), default=0)
            for engine in (ledger.engine, ledger.pools.adds):
                await engine.dispose()
    finally:
        await ledger.close()
    return figures


async def _key(ledger: Ledger, project_id: UUID) -> str:
    """A new admin key of the project."""
    secret = Secret()
    values = {"project_id": project_id, "name": "bench", "scope": Access.ADMIN}
    async with ledger.engine.begin() as connection:
        await connection.execute(
            insert(api_keys).values(digest=secret.digest, prefix=secret.prefix, **values)
        )
    return secret.key


async def _best_ms(run: Callable[[], Awaitable[object]], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        await run()
        times.append(time.perf_counter() - began)
    return round(1_000 * min(times), 1)


async def project_of(url: str) -> UUID:
    """The id of the project with most events, in the books."""
    ledger = build_ledger(url)
    query = "SELECT project_id FROM books WHERE kind = 'SUCCEEDED' ORDER BY amount DESC LIMIT 1"
    try:
        async with ledger.engine.connect() as connection:
            return UUID(str(await connection.scalar(text(query))))
    finally:
        await ledger.close()
