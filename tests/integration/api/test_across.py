"""Tenant isolation: a tenant with a valid key calls every route with ids of another tenant.

Each route has a case below; a route without one fails `test_every_route_has_a_case`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import func, insert, select

from api.app import create_app
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import Access, ProjectId
from pipeline.ledger.tables import conflicts, metadata, suggestions, summaries, summary_states
from pipeline.settings import Settings
from pipeline.stores import Ledger
from tests.support.api_service import ADD, LIST, Service, error_of, serving

READ, WRITE, ADMIN = Access
ORGS = "/api/v1/orgs/organizations/"
PROJECT = ORGS + "{org_id}/projects/{project_id}/"
WEBHOOK = "/api/v1/webhooks/{webhook_id}/"
WEBHOOKS = "/api/v1/webhooks/projects/{project_id}/"
RECEIVER = {"url": "https://hooks.example.org/", "name": "door", "event_types": ["memory_add"]}
ENTITY = "/v2/entities/{entity_type}/{entity_id:path}/"
NODE = "/v1/graph/entities/{node_id}/"
WORD = "Zanzibar"
TURN = {"messages": "I moved to Lima.", "user_id": "maya"}


@dataclass(frozen=True)
class Holding:
    """Ids of a tenant's rows, named as in paths and bodies."""

    org_id: str
    project_id: str
    memory_id: str
    event_id: str
    replay_id: str
    suggestion_id: str
    node_id: str
    curator_run_id: str
    conflict_id: str
    key_id: str
    entity_id: str
    email: str
    webhook_id: str
    delivery_id: str
    token_id: str
    view_id: str


# A private run of the victim.
RUN_ID = "visit"


@dataclass(frozen=True)
class Tenant:
    """A tenant's ids, and one key for each scope."""

    holding: Holding
    keys: dict[Access, str]

    def asking(self, access: Access = ADMIN) -> dict[str, str]:
        return {"Authorization": f"Token {self.keys[access]}"}


Named = dict[str, str]
Body = Callable[[Holding], Mapping[str, object] | None]


@dataclass(frozen=True)
class Case:
    """The scope that a route needs (None: no key), and a valid request to the route."""

    needs: Access | None
    body: Body = lambda _: None
    query: Callable[[Holding], dict[str, str]] = lambda _: {}


MAYA = {"user_id": "maya"}


def memory_line(memory_id: str) -> dict[str, str]:
    """A line of an import, for a memory of another project."""
    at = dict.fromkeys(
        ("said_at", "valid_from", "created_at", "updated_at"), "2026-03-01T09:00:00Z"
    )
    return {"type": "memory", "id": memory_id, "text": "I live in Oslo."} | MAYA | at


# Paths that answer null or [] for an unknown id, as Mem0's open-source server does.
EMPTY_IF_UNKNOWN = ("/memories/{memory_id}/", "/memories/{memory_id}/history/")
FOUND_BY = (
    lambda _: {"filters": MAYA, "query": WORD},
    lambda it: {"filters": {"memory_ids": [it.memory_id]} | MAYA, "query": WORD},
    lambda it: {"filters": MAYA, "query": WORD, "after_event": it.event_id},
    lambda _: {"filters": MAYA, "query": WORD, "as_of": "2100-01-01"},
    lambda _: {"filters": MAYA, "query": WORD, "valid_at": "2100-01-01"},
    lambda _: {"filters": MAYA, "query": WORD, "include_superseded": True},
)
CASES: dict[tuple[str, str], list[Case]] = {
    ("GET", "/openapi.json"): [Case(None)],
    ("GET", "/docs"): [Case(None)],
    ("GET", "/docs/start.js"): [Case(None)],
    ("GET", "/docs/swagger-ui-bundle.js"): [Case(None)],
    ("GET", "/docs/swagger-ui.css"): [Case(None)],
    ("GET", "/redoc"): [Case(None)],
    ("GET", "/redoc/redoc.standalone.js"): [Case(None)],
    ("GET", "/livez"): [Case(None)],
    ("GET", "/healthz"): [Case(None)],
    ("GET", "/readyz"): [Case(None)],
    ("GET", "/metrics"): [Case(None)],
    ("POST", "/v1/console/links/"): [Case(READ)],
    ("GET", "/v1/ping/"): [Case(READ)],
    ("GET", "/v1/stats/"): [Case(READ)],
    ("POST", "/v3/memories/add/"): [Case(WRITE, lambda _: TURN)],
    ("POST", "/v1/memories/"): [Case(WRITE, lambda _: TURN)],
    ("POST", "/memories/"): [Case(WRITE, lambda _: TURN)],
    ("GET", "/memories/"): [Case(ADMIN), Case(READ, query=lambda _: MAYA)],
    ("DELETE", "/memories/"): [Case(WRITE, query=lambda _: MAYA)],
    ("POST", "/search/"): [Case(READ, body) for body in FOUND_BY[:2]],
    ("GET", "/memories/{memory_id}/"): [Case(READ)],
    ("PUT", "/memories/{memory_id}/"): [Case(WRITE, lambda _: {"text": "I live in Rome."})],
    ("DELETE", "/memories/{memory_id}/"): [Case(WRITE)],
    ("GET", "/memories/{memory_id}/history/"): [Case(READ)],
    ("GET", "/entities/"): [Case(READ)],
    ("DELETE", "/entities/{entity_type}/{entity_id:path}/"): [Case(WRITE)],
    ("POST", "/reset/"): [Case(ADMIN)],
    **{
        ("POST", path): [Case(READ, body) for body in FOUND_BY]
        for path in (
            "/v2/memories/",
            "/v3/memories/",
            "/v1/memories/search/",
            "/v2/memories/search/",
            "/v3/memories/search/",
        )
    },
    ("GET", "/v1/memories/"): [Case(READ, query=lambda _: MAYA)],
    ("DELETE", "/v1/memories/"): [Case(WRITE, query=lambda _: MAYA)],
    ("GET", "/v1/memories/events/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("GET", "/v1/memories/{entity_type}/{entity_id:path}/"): [Case(READ)],
    ("PUT", "/v1/batch/"): [
        Case(WRITE, lambda it: {"memories": [{"memory_id": it.memory_id, "text": "Mine now."}]})
    ],
    ("DELETE", "/v1/batch/"): [
        Case(WRITE, lambda it: {"memories": [{"memory_id": it.memory_id}]}),
    ],
    ("POST", "/v1/feedback/"): [
        Case(WRITE, lambda it: {"memory_id": it.memory_id, "feedback": "POSITIVE"}),
    ],
    ("GET", "/v1/entities/"): [Case(READ)],
    ("GET", "/v1/entities/filters/"): [Case(READ)],
    ("GET", ENTITY): [Case(READ)],
    ("DELETE", ENTITY): [Case(WRITE)],
    ("DELETE", ENTITY.replace("v2", "v1")): [Case(WRITE)],
    **{
        ("POST", f"/v1/{kind}s/"): [Case(WRITE, lambda _, kind=kind: {f"{kind}_id": "me"})]  # type: ignore[misc]
        for kind in ("user", "agent", "app", "run")
    },
    ("GET", "/v2/entities/user/{entity_id:path}/profile/"): [
        Case(READ),
        Case(READ, query=lambda _: {"as_of": "2100-01-01"}),
    ],
    ("POST", "/v2/profiles/jobs/"): [
        Case(WRITE, lambda _: {"operation": "trigger", "entity_type": "user", "entity_id": "maya"}),
        Case(WRITE, lambda _: {"operation": "sample", "entity_type": "user"}),
    ],
    ("GET", "/v2/profiles/jobs/{job_id}/"): [Case(READ)],
    ("GET", "/v2/profiles/settings/"): [Case(READ)],
    ("POST", "/v2/profiles/settings/"): [Case(ADMIN, lambda _: {"enabled": True})],
    ("POST", "/v1/exports/"): [
        Case(WRITE, lambda _: {"filters": MAYA, "schema": {"type": "object"}})
    ],
    ("POST", "/v1/exports/get/"): [
        Case(READ, lambda it: {"memory_export_id": it.event_id}),
        Case(READ, lambda _: {"filters": MAYA}),
    ],
    ("POST", "/v1/summary/"): [Case(WRITE, lambda _: {"filters": MAYA})],
    ("GET", "/v1/memories/{memory_id}/"): [
        Case(READ),
        Case(READ, query=lambda _: {"as_of": "2100-01-01"}),
        Case(READ, query=lambda _: {"valid_at": "2100-01-01"}),
    ],
    ("PUT", "/v1/memories/{memory_id}/"): [Case(WRITE, lambda _: {"text": "Mine now."})],
    ("DELETE", "/v1/memories/{memory_id}/"): [Case(WRITE)],
    ("POST", "/v1/memories/{memory_id}/restore/"): [Case(WRITE, lambda _: {"version": 1})],
    ("GET", "/v1/changes/"): [
        Case(READ, query=lambda _: {"from": "2020-01-01"} | MAYA),
        Case(READ, query=lambda it: {"from": "2020-01-01", "memory_id": it.memory_id}),
    ],
    ("GET", "/v1/memories/{memory_id}/history/"): [Case(READ)],
    ("GET", "/v1/events/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("GET", "/v1/event/{event_id}/"): [Case(READ), Case(READ, query=lambda _: {"wait": "1"})],
    ("GET", "/v1/events/{event_id}/"): [Case(READ)],
    ("GET", "/v1/event/{event_id}/stream/"): [Case(READ)],
    ("POST", "/v1/event/{event_id}/cancel/"): [Case(WRITE)],
    ("POST", "/v1/event/{event_id}/replay/"): [
        Case(WRITE),
        Case(WRITE, lambda _: {"messages": "I moved to Lima."}),
    ],
    ("POST", "/v1/event/{event_id}/undo/"): [Case(WRITE, lambda _: {"force": True})],
    ("POST", "/v1/events/replay/"): [
        Case(WRITE, lambda _: MAYA),
        Case(WRITE, lambda _: {"code": "CANCELLED"}),
    ],
    ("GET", "/v1/audit/"): [Case(ADMIN), Case(ADMIN, query=lambda it: {"key_id": it.key_id})],
    ("POST", "/v1/user-tokens/"): [Case(WRITE, lambda _: MAYA)],
    ("GET", "/v1/user-tokens/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("DELETE", "/v1/user-tokens/"): [Case(WRITE, query=lambda _: {"user_id": "jon"})],
    ("DELETE", "/v1/user-tokens/{token_id}/"): [Case(WRITE)],
    ("GET", "/v1/users/{user_id:path}/download/"): [Case(READ)],
    ("GET", "/v1/transfer/export/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("POST", "/v1/transfer/import/"): [
        Case(WRITE, lambda it: {"records": [memory_line(it.memory_id)]}),
        Case(WRITE, lambda it: {"records": [memory_line(it.memory_id)], "dry_run": True}),
    ],
    ("POST", "/v1/erasures/"): [Case(WRITE, lambda it: {"agent_id": it.entity_id})],
    ("GET", "/v1/erasures/{event_id}/"): [Case(READ)],
    ("PUT", "/v1/runs/{run_id:path}/"): [
        Case(WRITE, lambda _: {"privacy": "temporary"}),
        Case(WRITE, lambda _: {"privacy": "incognito"}),
    ],
    ("GET", "/v1/runs/{run_id:path}/"): [Case(READ)],
    ("GET", WEBHOOKS): [Case(READ)],
    ("POST", WEBHOOKS): [Case(WRITE, lambda _: RECEIVER)],
    ("PUT", WEBHOOK): [Case(WRITE, lambda _: {"name": "mine"})],
    ("DELETE", WEBHOOK): [Case(WRITE)],
    ("GET", WEBHOOK + "deliveries/"): [Case(READ)],
    ("POST", WEBHOOK + "deliveries/{delivery_id}/redeliver/"): [Case(WRITE)],
    ("GET", "/v1/suggestions/"): [
        Case(READ),
        Case(READ, query=lambda _: {"state": "OPEN"}),
        Case(READ, query=lambda _: MAYA),
    ],
    ("GET", "/v1/suggestions/{suggestion_id}/"): [Case(READ)],
    **{
        ("POST", f"/v1/suggestions/{{suggestion_id}}/{action}/"): [Case(WRITE)]
        for action in ("accept", "reject", "dismiss")
    },
    ("POST", "/v1/suggestions/decide/"): [
        Case(WRITE, lambda it: {"action": "accept", "ids": [it.suggestion_id]}),
        Case(WRITE, lambda it: {"action": "reject", "ids": [it.suggestion_id]}),
    ],
    ("GET", "/v1/conflicts/"): [
        Case(READ),
        Case(READ, query=lambda _: {"state": "OPEN"}),
        Case(READ, query=lambda _: MAYA),
    ],
    ("GET", "/v1/conflicts/{conflict_id}/"): [Case(READ)],
    ("POST", "/v1/conflicts/{conflict_id}/resolve/"): [Case(WRITE, lambda _: {"keep": "both"})],
    ("POST", "/v1/curator/runs/"): [Case(WRITE, lambda it: {"agent_id": it.entity_id})],
    ("GET", "/v1/curator/runs/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("GET", "/v1/curator/runs/{curator_run_id}/"): [Case(READ)],
    ("POST", "/v1/curator/runs/{curator_run_id}/cancel/"): [Case(WRITE)],
    ("GET", "/v1/verify/"): [Case(ADMIN)],
    ("GET", "/v1/verify/heads/"): [Case(ADMIN)],
    ("GET", "/v1/summaries/"): [Case(READ, query=lambda ids: MAYA | {"agent_id": ids.entity_id})],
    ("GET", "/v1/graph/"): [
        Case(READ, query=lambda _: MAYA),
        Case(READ, query=lambda it: MAYA | {"entity_id": it.node_id}),
        Case(READ, query=lambda _: MAYA | {"entity": "me", "as_of": "2100-01-01"}),
    ],
    ("GET", "/v1/graph/export/"): [
        Case(READ, query=lambda _: MAYA),
        Case(READ, query=lambda _: MAYA | {"as_of": "2100-01-01"}),
    ],
    ("GET", NODE): [Case(READ)],
    ("PUT", NODE): [Case(WRITE, lambda _: {"name": "mine"})],
    ("DELETE", NODE): [Case(WRITE)],
    ("POST", NODE + "merge/"): [Case(WRITE, lambda it: {"into": it.node_id})],
    ("POST", NODE + "split/"): [Case(WRITE)],
    ("POST", "/v1/replays/"): [Case(WRITE, lambda _: MAYA)],
    ("GET", "/v1/replays/"): [Case(READ), Case(READ, query=lambda _: MAYA)],
    ("GET", "/v1/replays/{replay_id}/"): [Case(READ)],
    ("GET", "/v1/replays/{replay_id}/diff/"): [Case(READ)],
    ("POST", "/v1/replays/{replay_id}/switch/"): [Case(WRITE, lambda _: {"force": True})],
    ("DELETE", "/v1/replays/{replay_id}/"): [Case(WRITE)],
    ("GET", "/v1/keys/"): [Case(ADMIN, query=lambda it: {"project_id": it.project_id})],
    ("POST", "/v1/keys/"): [
        Case(ADMIN, lambda it: {"name": "door", "project_id": it.project_id}),
        Case(ADMIN, lambda it: {"name": "door", "member": it.email}),
    ],
    ("DELETE", "/v1/keys/{key_id}/"): [Case(ADMIN)],
    ("GET", ORGS): [Case(READ)],
    ("POST", ORGS): [Case(ADMIN, lambda _: {"name": "mine"})],
    ("GET", ORGS + "{org_id}/"): [Case(READ)],
    ("DELETE", ORGS + "{org_id}/"): [Case(ADMIN)],
    ("GET", ORGS + "{org_id}/members/"): [Case(READ)],
    ("POST", ORGS + "{org_id}/members/"): [Case(ADMIN, lambda _: {"email": "me@example.org"})],
    ("PUT", ORGS + "{org_id}/members/"): [
        Case(ADMIN, lambda it: {"email": it.email, "role": "OWNER"}),
    ],
    ("DELETE", ORGS + "{org_id}/members/"): [
        Case(ADMIN, lambda it: {"email": it.email}),
        Case(ADMIN, query=lambda it: {"email": it.email}),
    ],
    ("GET", ORGS + "{org_id}/projects/"): [Case(READ)],
    ("POST", ORGS + "{org_id}/projects/"): [Case(ADMIN, lambda _: {"name": "mine"})],
    ("GET", PROJECT): [Case(READ)],
    ("PATCH", PROJECT): [Case(ADMIN, lambda _: {"custom_instructions": "Forget it all."})],
    ("DELETE", PROJECT): [Case(ADMIN)],
    ("GET", PROJECT + "members/"): [Case(READ)],
    ("POST", PROJECT + "members/"): [Case(ADMIN, lambda _: {"email": "me@example.org"})],
    ("PUT", PROJECT + "members/"): [
        Case(ADMIN, lambda it: {"email": it.email, "role": "OWNER"}),
    ],
    ("DELETE", PROJECT + "members/"): [Case(ADMIN, query=lambda it: {"email": it.email})],
}
EACH = pytest.mark.parametrize(
    ("method", "path", "case"),
    [(*route, case) for route, cases in CASES.items() for case in cases],
    ids=[f"{m} {p} {n}" for (m, p), cases in CASES.items() for n, _ in enumerate(cases, 1)],
)


@dataclass
class Attack:
    """Two tenants of one server, and the ledger's rows from before the intruder was created."""

    service: Service
    client: httpx.AsyncClient
    victim: Tenant
    intruder: Tenant
    before: dict[str, set[str]]
    owned: dict[str, int]

    async def send(
        self,
        method: str,
        path: str,
        case: Case,
        ids: Holding,
        headers: dict[str, str],
        *,
        query: Named | None = None,
        body: Named | None = None,
    ) -> httpx.Response:
        """Send the case's request with these ids; `query` and `body` add values for the attack."""
        sent = case.body(ids)
        return await self.client.request(
            method,
            path.replace(":path", "").format(
                **asdict(ids), entity_type="agent", job_id="job", run_id=RUN_ID, user_id="maya"
            ),
            json={**(sent or {}), **body} if body else sent,
            params=case.query(ids) | (query or {}),
            headers=headers,
        )

    async def holds(self) -> None:
        """Check that no row of the victim was changed, and that none was added."""
        await self.service.engine.drain()
        now = await rows(self.service.engine.ledger)
        assert {
            name: count - now[name] for name, count in self.before.items() if count - now[name]
        } == {}
        assert await owned(self.service.engine.ledger, self.victim) == self.owned


async def rows(ledger: Ledger) -> dict[str, set[str]]:
    # an erasure folds the entries of all tenants, so fold them before comparing
    await ledger.balance.fold()
    async with ledger.engine.connect() as connection:
        return {
            name: {str(row) for row in await connection.execute(select(table))}
            for name, table in metadata.tables.items()
        }


async def owned(ledger: Ledger, tenant: Tenant) -> dict[str, int]:
    """Number of rows that name the tenant's project, by table."""
    async with ledger.engine.connect() as connection:
        return {
            name: await connection.scalar(
                select(func.count()).where(table.c.project_id == tenant.holding.project_id)
            )
            or 0
            for name, table in metadata.tables.items()
            if "project_id" in table.c
        }


async def furnish(service: Service, name: str, turn: str) -> Tenant:
    """Create a tenant with one row of every kind that has an id."""
    project, key = await service.engine.ledger.projects.create(name)
    client, headers = service.client, {"Authorization": f"Token {key}"}

    async def post(path: str, **body: object) -> dict[str, str]:
        answer = await client.post(path, json=body, headers=headers | {"Idempotency-Key": path})
        assert answer.status_code == 200, answer.text
        await service.engine.drain()
        return dict(answer.json())

    email, agent = f"{name}@example.org", f"agent of {name}"
    path = PROJECT.format(org_id=project.organization_id, project_id=project.id)
    await post(f"{path}members/", email=email, role="READER")
    keys = {access: await post("/v1/keys/", name=access, scope=access) for access in Access}
    webhooks = WEBHOOKS.format(project_id=project.id)
    webhook = (await client.post(webhooks, json=RECEIVER, headers=headers)).json()
    event = await post(ADD, messages=turn, user_id="maya", agent_id=agent)
    await summarize(service, Scope(project.id, user_id="maya", agent_id=agent), turn)
    replay = await post("/v1/replays/", user_id="maya", agent_id=agent)
    curator_run = await post("/v1/curator/runs/", user_id="maya", agent_id=agent)
    listed = await client.post(LIST, json={"filters": MAYA}, headers=headers)
    [memory] = listed.json()["results"]
    graph = await client.get("/v1/graph/", params=MAYA, headers=headers)
    relation = graph.json()["results"][0]
    if name == "victim":
        run = {"privacy": "temporary"}
        await client.put(f"/v1/runs/{RUN_ID}/", json=run, headers=headers)
    log = WEBHOOK.format(**webhook) + "deliveries/"
    [delivery] = (await client.get(log, headers=headers)).json()["results"]
    token = await post("/v1/user-tokens/", user_id="maya", rights=["read"])
    view_id = await service.engine.ledger.saved_views.save(project.id, name, "/events", {})
    holding = Holding(
        org_id=str(project.organization_id),
        project_id=str(project.id),
        memory_id=memory["id"],
        event_id=event["event_id"],
        replay_id=replay["id"],
        suggestion_id=str(await suggestion(service, project.id)),
        node_id=relation["source_id"],
        curator_run_id=curator_run["id"],
        conflict_id=str(await conflict(service, project.id)),
        key_id=keys[WRITE]["id"],
        entity_id=agent,
        email=email,
        webhook_id=webhook["webhook_id"],
        delivery_id=delivery["id"],
        token_id=token["id"],
        view_id=str(view_id),
    )
    return Tenant(holding, {access: made["key"] for access, made in keys.items()})


async def summarize(service: Service, scope: Scope, text: str) -> None:
    """Store a summary of the scope's conversation."""
    lane = {"lane_id": scope.lane_id, "project_id": scope.project_id}
    version = {"version": 1, "text": text, "messages": 1, "model": "", "prompt": ""}
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(insert(summary_states).values(lane))
        await connection.execute(
            insert(summaries).values(lane | version | {"after_seq": 0, "until_seq": 1})
        )


async def suggestion(service: Service, project_id: ProjectId) -> UUID:
    """The id of a suggestion of the project."""
    suggestion_id = uuid4()
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            insert(suggestions).values(
                id=suggestion_id,
                project_id=project_id,
                lane_id=uuid4(),
                kind="DELETE",
                origin="event",
                targets=[],
                reason="No other project may read this.",
                content_hash=b"",
            )
        )
    return suggestion_id


async def conflict(service: Service, project_id: ProjectId) -> UUID:
    """The id of a conflict of the project."""
    values = {
        "project_id": project_id,
        "lane_id": uuid4(),
        "slot": "zoe · age",
        "event_id": uuid4(),
    }
    conflict_id = uuid4()
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(insert(conflicts).values(id=conflict_id, **values))
    return conflict_id


@pytest.fixture(scope="module")
async def attack(module_ledger: Ledger) -> AsyncIterator[Attack]:
    async with serving(module_ledger, sync_wait_s=0.01) as service:
        victim = await furnish(service, "victim", f"I live in {WORD}.")
        before = await rows(module_ledger)
        intruder = await furnish(service, "intruder", "I live in Oslo.")
        mine = await owned(module_ledger, victim)
        transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
            yield Attack(service, client, victim, intruder, before, mine)


def test_every_route_has_a_case() -> None:
    served = {
        (method, context.path)
        for context in iter_route_contexts(create_app(Settings()).routes)
        for method in context.methods or ()
        if method != "HEAD"
        # These have cases in test_console_walls.py and test_user_page.py.
        and not (context.path or "").startswith(("/console", "/user"))
    }
    # Each MCP tool sends a request to one of the other routes, with the caller's key.
    assert served - {("POST", "/mcp"), ("POST", "/mcp/")} == set(CASES)


def body_of(answer: httpx.Response) -> object:
    """Body of the response, without the id of the event that the request created."""
    body = answer.json()
    return body | {"event_id": None} if isinstance(body, dict) else body


def ids_of(path: str) -> bool:
    """Tell if the path contains an id; names of users and agents do not count as ids."""
    return bool(re.search(r"{(?!entity|job|user)", path))


@EACH
async def test_no_request_reaches_another_projects_data(
    attack: Attack, method: str, path: str, case: Case
) -> None:
    mine, theirs = asdict(attack.intruder.holding), asdict(attack.victim.holding)
    headers = attack.intruder.asking() | {"Idempotency-Key": ADD}
    named = [name for name in re.findall(r"{(\w+)", path) if name in mine]
    for chosen in itertools.product((mine, theirs), repeat=len(named)):
        if named and theirs not in chosen:
            continue  # no id of the other tenant, so no attack
        given = {name: ids[name] for name, ids in zip(named, chosen, strict=True)}
        ids = replace(attack.victim.holding, **given)
        answer = await attack.send(method, path, case, ids, headers)
        assert answer.status_code < 500 or answer.status_code == 501, answer.text
        assert not [it for it in (WORD, *theirs.values()) if it in answer.text], answer.text
        if named:
            made_up = {name: it if it == mine[name] else str(uuid4()) for name, it in given.items()}
            unknown = replace(ids, **made_up)
            unknowns = await attack.send(method, path, case, unknown, headers)
            assert (answer.status_code, body_of(answer)) == (
                unknowns.status_code,
                body_of(unknowns),
            )
            assert answer.status_code == 404 or not ids_of(path) or path in EMPTY_IF_UNKNOWN
    await attack.holds()


@EACH
async def test_to_name_anothers_project_or_organization_opens_nothing(
    attack: Attack, method: str, path: str, case: Case
) -> None:
    if case.needs is None:
        return
    mine, theirs = attack.intruder.holding, attack.victim.holding
    headers = attack.intruder.asking()
    for other in ({"org_id": theirs.org_id}, {"project_id": theirs.project_id}):
        answers = [await attack.send(method, path, case, mine, headers, query=other)]
        if method != "GET":
            answers.append(await attack.send(method, path, case, mine, headers, body=other))
        for answer in answers:
            assert answer.status_code == 404, answer.text
            assert error_of(answer) in ("Project not found.", "Organization not found.")
    await attack.holds()


@EACH
async def test_a_key_does_what_its_scope_says_and_no_more(
    attack: Attack, method: str, path: str, case: Case
) -> None:
    own = attack.intruder.holding
    # A route that changes something gets unknown ids, so that nothing is changed.
    ids = own if method == "GET" else replace(own, **{name: str(uuid4()) for name in asdict(own)})
    anonymous = await attack.send(method, path, case, ids, {})
    if case.needs is None:
        assert anonymous.status_code == 200
        return
    assert anonymous.status_code == 401
    for access in Access:
        answer = await attack.send(method, path, case, ids, attack.intruder.asking(access))
        if access.allows(case.needs):
            assert answer.status_code not in (401, 500), answer.text
            if answer.status_code == 403:  # only this route requires more than a scope
                assert path == ORGS
        else:
            assert answer.status_code == 403
            assert f"scope {case.needs}" in error_of(answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_member_of_another_project_is_not_found(attack: Attack, method: str) -> None:
    ids = replace(attack.intruder.holding, email=attack.victim.holding.email)
    [case] = CASES[method, PROJECT + "members/"]
    answer = await attack.send(method, PROJECT + "members/", case, ids, attack.intruder.asking())
    assert answer.status_code == 404
    await attack.holds()
