"""No read shows anything of a temporary run that it does not name: every route and every tool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import insert

from api.mcp.tools import TOOLS
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import conflicts, feedback, suggestions
from pipeline.stores import Ledger
from tests.integration.api.test_across import CASES, READ, Case, Tenant, furnish, summarize
from tests.integration.api.test_mcp import session
from tests.support.api_service import ADD, LIST, SEARCH, Service, serving

RUN = "trip-4711"
MARKS = (RUN, "Zanzibar", "zanzibar")
WRITTEN = "I moved to Zanzibar. My brother Zanzibaro works at Zanzibarium."
# The run is not in these requests, so none of their answers may have a mark.
READS = [
    (method, path, case)
    for (method, path), cases in CASES.items()
    for case in cases
    if case.needs in (READ, None)
]
MAYA = {"user_id": "maya"}
WIDER = (
    {"AND": [MAYA, {"run_id": "*"}]},
    {"AND": [MAYA, {"NOT": {"run_id": "other"}}]},
    {"OR": [MAYA, {"run_id": "other"}]},
    {"run_id": "*"},
    {"user_id": "*"},
    {"app_id": "desk"},
)
ARGUMENTS = {
    "search_memories": {"query": "Zanzibar", "user_id": "maya"},
    "get_memories": {"user_id": "maya"},
    "get_memory": {},
    "list_entities": {},
    "list_events": {},
    "explore_graph": {"user_id": "maya", "entity": "user"},
    "get_event_status": {},
}


@dataclass(frozen=True)
class Session:
    """A tenant with ordinary rows of every kind, and a temporary run with as many."""

    service: Service
    tenant: Tenant
    scope: Scope

    @property
    def headers(self) -> dict[str, str]:
        return self.tenant.asking()

    async def send(self, method: str, path: str, case: Case) -> httpx.Response:
        ids = self.tenant.holding
        filled = asdict(ids) | {
            "entity_type": "user",
            "job_id": str(UUID(int=1)),
            "run_id": "other",
        }
        filled |= {"user_id": "maya"}
        return await self.service.client.request(
            method,
            path.replace(":path", "").format(**filled | {"entity_id": "maya"}),
            json=case.body(ids),
            params=case.query(ids),
            headers=self.headers,
        )


@pytest.fixture(scope="module")
async def opened(module_ledger: Ledger) -> AsyncIterator[Session]:
    async with serving(module_ledger, sync_wait_s=0.01) as service:
        tenant = await furnish(service, "guests", "I live in Lima.")
        project_id = ProjectId(UUID(tenant.holding.project_id))
        ids = {"user_id": "maya", "app_id": "desk", "run_id": RUN}
        scope = Scope(project_id, **ids)
        built = Session(service, tenant, scope)
        await service.client.put(
            f"/v1/runs/{RUN}/", json={"privacy": "temporary"}, headers=built.headers
        )
        for body in (
            {"messages": WRITTEN},
            {"messages": "I own a Zanzibar flag.", "infer": False},
            {"messages": "I like Zanzibar tea.", "dry_run": True},
        ):
            sent = await service.client.post(ADD, json=body | ids, headers=built.headers)
            assert sent.status_code == 200, sent.text
            await service.engine.drain()
        # One more waits in the queue.
        await service.client.post(ADD, json={"messages": "Zanzibar."} | ids, headers=built.headers)
        await service.engine.services.index.catch_up()
        for path in ("/v1/replays/", "/v1/curator/runs/"):
            started = await service.client.post(path, json=ids, headers=built.headers)
            assert started.status_code == 200, started.text
        await _decide(service, built, ids)
        yield built
        await service.app.state.mcp.close()


async def _decide(service: Service, built: Session, ids: dict[str, str]) -> None:
    """Change, delete, rate and summarize memories of the run; suggest and contest others."""
    listed = await service.client.post(LIST, json={"filters": ids}, headers=built.headers)
    first, *rest = listed.json()["results"]
    assert rest
    path = f"/v1/memories/{first['id']}/"
    put = await service.client.put(path, json={"text": "Zanzibar is far."}, headers=built.headers)
    assert put.status_code == 200
    await service.client.delete(f"/v1/memories/{rest[-1]['id']}/", headers=built.headers)
    await summarize(service, built.scope, "Zanzibar")
    own = {"project_id": built.scope.project_id, "lane_id": built.scope.lane_id}
    target = {"memory_id": first["id"], "version": 2}
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            insert(suggestions).values(
                id=uuid4(), kind="DELETE", origin="event", targets=[target], fact_text="Zanzibar",
                proposed_text="Zanzibar", reason="Zanzibar", content_hash=b"", **own,
            )
        )  # fmt: skip
        await connection.execute(
            insert(conflicts).values(id=uuid4(), slot="zanzibar", event_id=uuid4(), **own)
        )
        rated = {"memory_id": first["id"], "project_id": own["project_id"]}
        await connection.execute(
            insert(feedback).values(feedback="POSITIVE", reason="Zanzibar", **rated)
        )


@pytest.mark.parametrize(
    ("method", "path", "case"), READS, ids=[f"{m} {p} {n}" for n, (m, p, _) in enumerate(READS)]
)
async def test_a_read_that_names_no_run_shows_nothing_of_a_temporary_one(
    opened: Session, method: str, path: str, case: Case
) -> None:
    answer = await opened.send(method, path, case)
    # Without a key for seals there is nothing to verify.
    assert answer.status_code in (200, 404, 501) or path == "/v1/verify/", answer.text
    assert not [mark for mark in MARKS if mark in answer.text], answer.text


@pytest.mark.parametrize("path", [LIST, SEARCH])
@pytest.mark.parametrize("filters", WIDER)
async def test_a_wide_filter_shows_nothing_of_it(
    opened: Session, path: str, filters: dict[str, object]
) -> None:
    body = {"filters": filters, "query": "Zanzibar"}
    if path == SEARCH:
        body["include"] = ["facts", "turns"]
    answer = await opened.service.client.post(path, json=body, headers=opened.headers)
    assert answer.status_code == 200, answer.text
    assert not [mark for mark in MARKS if mark in str(answer.json())]


async def test_an_export_of_the_user_is_not_made_of_it(opened: Session) -> None:
    shape = {"properties": {"summary": {"type": "string", "description": "all"}}}
    client, headers = opened.service.client, opened.headers
    body = {"filters": MAYA, "schema": shape}
    export = (await client.post("/v1/exports/", json=body, headers=headers)).json()
    await opened.service.engine.drain()
    got = {"memory_export_id": export["id"]}
    answer = await client.post("/v1/exports/get/", json=got, headers=headers)
    assert "Lima" in answer.text
    assert not [mark for mark in MARKS if mark in answer.text]


async def test_no_tool_shows_anything_of_it(opened: Session) -> None:
    ids = opened.tenant.holding
    given = ARGUMENTS | {
        "get_memory": {"memory_id": ids.memory_id},
        "get_event_status": {"event_id": ids.event_id},
    }
    assert {tool.name for tool in TOOLS if tool.reads} == set(given)
    async with session(opened.service, opened.tenant.keys[READ]) as tools:
        for name, arguments in given.items():
            result = await tools.call_tool(name, arguments)
            text = json.dumps([part.model_dump() for part in result.content], default=str)
            assert not result.is_error, text
            assert not [mark for mark in MARKS if mark in text], (name, text)


async def test_reads_that_name_the_run_show_it(opened: Session) -> None:
    client, headers = opened.service.client, opened.headers
    filters = MAYA | {"app_id": "desk", "run_id": RUN}
    body = {"filters": filters, "query": "Zanzibar"}
    for method, path, given in (
        ("POST", LIST, {"json": body}),
        ("POST", SEARCH, {"json": body}),
        ("GET", "/v1/events/", {"params": filters}),
        ("GET", "/v1/changes/", {"params": filters | {"from": "2020-01-01"}}),
        ("GET", "/v1/graph/", {"params": filters}),
        ("GET", "/v1/summaries/", {"params": filters}),
    ):
        answer = await client.request(method, path, headers=headers, **given)
        assert answer.status_code == 200, answer.text
        assert "Zanzibar" in answer.text, path
