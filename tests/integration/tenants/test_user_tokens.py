"""Users' tokens: short access to the memories of one user, with some of three rights."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import func, select, text, update

from api.dependencies import ApiCall
from api.user_tokens import download
from pipeline.domain.tenants import Right
from pipeline.ledger.tables import user_tokens
from pipeline.stores import Ledger
from pipeline.tenants.secret import Secret
from tests.integration.api.test_across import CASES, RUN_ID, Case
from tests.support.api_service import LIST, MAYA, SEARCH, Service, error_of, serving
from tests.support.slow_reader import read_slowly
from tests.support.tenant import Tenant

TOKENS = "/v1/user-tokens/"
# The routes that take a user's token, with the right that each requires.
TAKING = {
    ("GET", "/v1/memories/"): Right.READ,
    ("POST", "/v2/memories/"): Right.READ,
    ("POST", "/v3/memories/"): Right.READ,
    ("POST", "/v1/memories/search/"): Right.READ,
    ("POST", "/v2/memories/search/"): Right.READ,
    ("POST", "/v3/memories/search/"): Right.READ,
    ("GET", "/v1/memories/{memory_id}/"): Right.READ,
    ("GET", "/v1/memories/{memory_id}/history/"): Right.READ,
    ("GET", "/v1/users/{user_id:path}/download/"): Right.READ,
    ("PUT", "/v1/memories/{memory_id}/"): Right.CORRECT,
    ("DELETE", "/v1/memories/{memory_id}/"): Right.DELETE,
    ("POST", "/v1/erasures/"): Right.DELETE,
}
ALL = tuple(Right)
OTHERS = "Zanzibar"


class IdsOf(dict[str, str]):
    """Any attribute is an id of the other user's memory, or one that is unknown."""

    def __getattr__(self, name: str) -> str:
        return self.get(name, str(uuid4()))

    def __missing__(self, name: str) -> str:
        return str(uuid4())


async def make(tenant: Tenant, *rights: Right, **body: object) -> dict[str, Any]:
    sent = {"user_id": "maya", "rights": list(rights)} | body
    answer = await tenant.client.post(TOKENS, json=sent)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def asking(token: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Token {token['token']}"}


async def memory_of(service: Service, user_id: str) -> str:
    [memory] = await service.listed(user_id=user_id)
    return str(memory["id"])


async def furnish(tenant: Tenant) -> Tenant:
    """Give a tenant the users maya and jon, who share an agent."""
    await tenant.service.add("I live in Lima.", agent_id="bot")
    await tenant.service.add(f"I live in {OTHERS}.", user_id="jon", agent_id="bot")
    return tenant


@pytest.fixture
async def both(tenant: Tenant) -> Tenant:
    return await furnish(tenant)


@pytest.fixture(scope="module")
async def walls(module_ledger: Ledger) -> AsyncIterator[Tenant]:
    """A tenant for tests that change nothing."""
    async with serving(module_ledger) as service:
        yield await furnish(Tenant(service, service.client))


async def test_a_token_is_shown_once_and_listed_without_it(tenant: Tenant) -> None:
    made = await make(tenant, Right.READ, Right.CORRECT, expires_in_s=600)
    assert made["token"].startswith("mlu_")
    listed = (await tenant.client.get(TOKENS)).json()["results"]
    assert listed == [{name: made[name] for name in made if name != "token"}]
    assert (await tenant.client.get(TOKENS, params={"user_id": "jon"})).json()["results"] == []
    async with tenant.ledger.engine.connect() as connection:
        rows = await connection.scalars(select(text("user_tokens::text")).select_from(user_tokens))
        assert made["token"][6:] not in str(rows.all())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"user_id": "*"}, "stands for any id"),
        ({"user_id": "  "}, "id of a user"),
        ({"rights": []}, "rights"),
        ({"rights": ["admin"]}, "'read', 'correct' or 'delete'"),
        ({"expires_in_s": 86_401}, "86400"),
        ({"expires_in_s": 0}, "60"),
        ({"agent_id": "bot"}, "agent_id"),
    ],
)
async def test_a_bad_request_says_what_to_change(
    tenant: Tenant, body: dict[str, object], says: str
) -> None:
    answer = await tenant.client.post(TOKENS, json={"user_id": "maya"} | body)
    assert answer.status_code == 400
    assert says in error_of(answer)


async def test_a_read_key_makes_no_token(tenant: Tenant) -> None:
    key = await tenant.key(scope="read")
    assert await tenant.ask(key, "POST", TOKENS, user_id="maya") == 403


async def test_a_token_reads_what_is_known_of_its_user_alone(both: Tenant) -> None:
    headers = asking(await make(both, Right.READ))
    client = both.client
    listed = [
        (await client.post(LIST, json={}, headers=headers)).json()["results"],
        (await client.post("/v2/memories/", json={}, headers=headers)).json(),
        (await client.get("/v1/memories/", headers=headers)).json(),
        (await client.post(LIST, json={"filters": {"agent_id": "bot"}}, headers=headers)).json()[
            "results"
        ],
    ]
    assert [[row["memory"] for row in rows] for rows in listed] == [["User lives in Lima"]] * 4
    for filters in ({"agent_id": "bot"}, {"OR": [{"user_id": "jon"}, {"user_id": "maya"}]}):
        body = {"query": "Where do I live?", "filters": filters, "include": ["facts", "turns"]}
        answer = await client.post(SEARCH, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        assert "Lima" in answer.text
        assert OTHERS not in answer.text
    others: tuple[dict[str, Any], ...] = (
        {"user_id": "jon"},
        {"NOT": {"user_id": "maya"}},
        {"user_id": "*", "NOT": [{"user_id": "maya"}]},
    )
    for wanted in others:
        shown = await client.post(LIST, json={"filters": wanted}, headers=headers)
        assert shown.json()["results"] == []
    mine = await memory_of(both.service, "maya")
    assert (await client.get(f"/v1/memories/{mine}/", headers=headers)).status_code == 200
    history = await client.get(f"/v1/memories/{mine}/history/", headers=headers)
    assert history.json()[0]["input"][0]["content"] == "I live in Lima."


@pytest.mark.parametrize(
    ("method", "path", "case"),
    [(*route, case) for route, cases in CASES.items() for case in cases if case.needs],
    ids=[f"{m} {p} {n}" for (m, p), cases in CASES.items() for n, c in enumerate(cases) if c.needs],
)
async def test_a_token_opens_no_other_route_and_no_other_user(
    walls: Tenant, method: str, path: str, case: Case
) -> None:
    theirs = await memory_of(walls.service, "jon")
    project = walls.service.engine.project
    known = {"project_id": str(project.id), "org_id": str(project.organization_id)}
    ids = IdsOf(known | {"memory_id": theirs, "entity_id": "jon", "user_id": "jon"})
    token = await make(walls, *ALL)
    answer = await walls.client.request(
        method,
        path.replace(":path", "").format_map(
            IdsOf(dict(ids) | {"entity_type": "user", "run_id": RUN_ID})
        ),
        json=case.body(ids),  # type: ignore[arg-type]
        params=case.query(ids),  # type: ignore[arg-type]
        headers=asking(token),
    )
    assert OTHERS not in answer.text
    if (method, path) in TAKING:
        assert answer.status_code in (200, 403, 404), answer.text
        if "{" in path:
            assert answer.status_code == 404
    else:
        assert answer.status_code == 403, answer.text
        assert "takes an API key" in error_of(answer)
    await walls.service.engine.drain()
    jons = {"user_id": "jon"}
    assert [row["memory"] for row in await walls.service.listed(**jons)] == [
        f"User lives in {OTHERS}"
    ]


async def test_each_route_requires_its_right(both: Tenant) -> None:
    mine = await memory_of(both.service, "maya")
    for right in Right:
        others = await make(both, *(other for other in Right if other is not right))
        for (method, path), needed in TAKING.items():
            if needed is not right:
                continue
            [case, *_] = CASES[method, path]
            ids = IdsOf({"memory_id": mine, "user_id": "maya"})
            answer = await both.client.request(
                method,
                path.replace(":path", "").format_map(ids),
                json={"user_id": "maya"} if "erasures" in path else case.body(ids),  # type: ignore[arg-type]
                headers=asking(others),
            )
            assert answer.status_code == 403, (method, path, answer.text)
            assert f"the right {right}" in error_of(answer)


async def test_a_user_corrects_and_deletes_only_the_text_of_their_own(both: Tenant) -> None:
    headers = asking(await make(both, *ALL))
    path = f"/v1/memories/{await memory_of(both.service, 'maya')}/"
    for body in ({"pinned": False}, {"text": "x", "metadata": {}}):
        assert (await both.client.put(path, json=body, headers=headers)).status_code == 403
    sent = await both.client.put(path, json={"text": "Maya lives in Rome"}, headers=headers)
    assert (sent.json()["memory"], sent.json()["user_id"]) == ("Maya lives in Rome", "maya")
    assert (await both.client.delete(path, headers=headers)).status_code == 200
    assert await both.service.listed() == []
    assert (await both.client.get(path, headers=headers)).status_code == 404


@pytest.mark.parametrize("option", [{"explain": True}, {"after_event": str(uuid4())}])
async def test_options_that_tell_of_others_take_a_key(
    both: Tenant, option: dict[str, object]
) -> None:
    headers = asking(await make(both, Right.READ))
    body = {"query": "home", "filters": MAYA} | option
    answer = await both.client.post(SEARCH, json=body, headers=headers)
    assert answer.status_code == 403
    assert "takes an API key" in error_of(answer)


async def test_a_download_has_all_memories_and_messages_of_the_user(both: Tenant) -> None:
    await both.service.add("I own a boat.", run_id="trip")
    headers = asking(await make(both, Right.READ))
    answer = await both.client.get("/v1/users/maya/download/", headers=headers)
    saved = json.loads(answer.text)
    assert {row["memory"] for row in saved["memories"]} == {
        "User lives in Lima",
        "User owns a boat",
    }
    assert {row["content"] for row in saved["messages"]} == {"I live in Lima.", "I own a boat."}
    assert saved["memories"][0]["input"]["content"] == "I own a boat."
    assert OTHERS not in answer.text
    other = await both.client.get("/v1/users/jon/download/", headers=headers)
    assert other.status_code == 404


@pytest.mark.parametrize("own_page", [False, True])
async def test_a_download_ends_early_once_its_token_is_revoked(
    both: Tenant, own_page: bool
) -> None:
    token = await make(both, Right.READ)

    async def revoke() -> None:
        await both.client.delete(f"{TOKENS}{token['id']}/")

    if own_page:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = f"token={token['token']}".encode()
        saved = await read_slowly(
            both.service.app, "/user/download", form, after_first=revoke, method="POST", body=body
        )
    else:
        saved = await read_slowly(
            both.service.app, "/v1/users/maya/download/", asking(token), after_first=revoke
        )
    assert saved == b'{"user_id":"maya","memories":['


async def test_a_download_among_changes_has_each_other_memory_once(
    both: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come and go before a part's end must not move the next one."""
    monkeypatch.setattr(download, "PART", 2)
    things = ["boat", "kayak", "canoe", "sled", "tent"]
    for thing in things:
        await both.service.add(f"I own a {thing}.")
    grant = await both.service.api.keys.grant_of(Secret(both.service.key).digest)
    assert grant is not None
    parts = download.download(ApiCall(both.service.api, grant, grant.project), "maya")
    start = [await anext(parts) for _ in range(2)]
    [tent] = await both.service.search("tent", top_k=1)
    assert (await both.client.delete(f"/v1/memories/{tent['id']}/")).status_code == 200
    start += [await anext(parts)]
    for thing in ("bike", "car", "horse"):
        await both.service.add(f"I own a {thing}.")
    saved = json.loads(b"".join([*start, *[part async for part in parts]]))
    owned = [row["memory"].rpartition(" ")[2] for row in saved["memories"]]
    assert owned == [*reversed(things), "Lima"]


async def test_an_erasure_ends_the_tokens_of_the_user_and_no_others(both: Tenant) -> None:
    mine, jons = await make(both, *ALL), await make(both, Right.READ, user_id="jon")
    body = {"user_id": "maya"}
    for wrong in ({"user_id": "jon"}, {"agent_id": "bot"}):
        refused = await both.client.post("/v1/erasures/", json=wrong, headers=asking(mine))
        assert refused.status_code == 403
    erased = await both.client.post("/v1/erasures/", json=body, headers=asking(mine))
    assert erased.status_code == 200, erased.text
    receipt = (await both.client.get(f"/v1/erasures/{erased.json()['event_id']}/")).json()
    assert receipt["erased"]["user_tokens"] == 1
    assert (await both.client.post(LIST, json={}, headers=asking(mine))).status_code == 401
    assert (await both.client.post(LIST, json={}, headers=asking(jons))).status_code == 200


async def ended(tenant: Tenant, token: dict[str, Any]) -> bool:
    tenant.service.api.keys.forget()  # the cache of keys
    answer = await tenant.client.post(LIST, json={}, headers=asking(token))
    assert answer.status_code in (200, 401)
    return answer.status_code == 401


async def test_a_token_ends_by_time_by_hand_and_with_its_key(tenant: Tenant) -> None:
    first, second, third = [await make(tenant, Right.READ) for _ in range(3)]
    key = await tenant.key(scope="write")
    headers = {"Authorization": f"Token {key['key']}"}
    body = {"user_id": "maya"}
    fourth = (await tenant.client.post(TOKENS, json=body, headers=headers)).json()
    assert not await ended(tenant, fourth)
    async with tenant.ledger.engine.begin() as connection:
        over = update(user_tokens).where(user_tokens.c.id == first["id"])
        await connection.execute(over.values(expires_at=func.now() - text("interval '1 second'")))
    assert await ended(tenant, first)
    assert (await tenant.client.delete(f"{TOKENS}{second['id']}/")).status_code == 200
    assert (await tenant.client.delete(f"{TOKENS}{second['id']}/")).status_code == 404
    assert await ended(tenant, second)
    assert not await ended(tenant, third)
    assert (await tenant.client.delete(f"/v1/keys/{key['id']}/")).status_code == 200
    assert await ended(tenant, fourth)
    revoked = await tenant.client.delete(TOKENS, params={"user_id": "maya"})
    assert revoked.json()["revoked"] >= 1
    assert await ended(tenant, third)


async def test_a_token_has_no_more_rights_than_its_key(tenant: Tenant) -> None:
    """A member who becomes a READER can read, and so can the tokens that their key made."""
    member = {"email": "noor@example.org", "role": "OWNER"}
    await tenant.client.post(f"{tenant.project}members/", json=member)
    key = await tenant.key(scope="write", member="noor@example.org")
    headers = {"Authorization": f"Token {key['key']}"}
    body = {"user_id": "maya", "rights": list(Right)}
    token = (await tenant.client.post(TOKENS, json=body, headers=headers)).json()
    await tenant.service.add("I live in Lima.")
    path = f"/v1/memories/{await memory_of(tenant.service, 'maya')}/"
    await tenant.client.put(f"{tenant.project}members/", json=member | {"role": "READER"})
    assert (await tenant.client.delete(path, headers=asking(token))).status_code == 403
    assert (await tenant.client.get(path, headers=asking(token))).status_code == 200


ORIGIN = "https://chat.example.org"


def preflight(client: httpx.AsyncClient, origin: str) -> Any:
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    return client.options(LIST, headers=headers)


async def test_scripts_of_the_projects_origins_may_call_the_api(both: Tenant) -> None:
    token = await make(both, Right.READ)
    assert "access-control-allow-origin" not in (await preflight(both.client, ORIGIN)).headers
    changed = await both.client.patch(both.project, json={"allowed_origins": [ORIGIN.upper()]})
    assert changed.status_code == 200, changed.text
    both.service.app.middleware_stack = None  # a process that has not cached the origin
    allowed = await preflight(both.client, ORIGIN)
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "Authorization" in allowed.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in allowed.headers
    sent = asking(token) | {"Origin": ORIGIN}
    answer = await both.client.post(LIST, json={}, headers=sent)
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["vary"] == "Origin"
    wrong = await both.client.post(LIST, json={}, headers=sent | {"Authorization": "Token mlu_x"})
    assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (401, ORIGIN)
    for other in ("https://evil.example", "null", ORIGIN + ".evil.example"):
        assert "access-control-allow-origin" not in (await preflight(both.client, other)).headers
        headers = asking(token) | {"Origin": other}
        shown = await both.client.post(LIST, json={}, headers=headers)
        assert "access-control-allow-origin" not in shown.headers
    # Another project of the server does not allow the origin.
    _, key = await both.ledger.projects.create("other")
    theirs = {"Authorization": f"Token {key}", "Origin": ORIGIN}
    answer = await both.client.post(LIST, json={"filters": MAYA}, headers=theirs)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origin", ["*", "chat.example.org", "https://x.org/path", "javascript:1"])
async def test_an_origin_is_a_scheme_and_a_host(tenant: Tenant, origin: str) -> None:
    answer = await tenant.client.patch(tenant.project, json={"allowed_origins": [origin]})
    assert answer.status_code == 400
    assert "https://chat.example.org" in error_of(answer)
