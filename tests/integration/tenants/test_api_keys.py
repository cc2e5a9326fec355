"""API keys: shown once, their access and their ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import func, select, text, update

from api.auth.key_cache import KeyRing
from api.auth.rate_limit import RateLimit
from pipeline.ledger.tables import api_keys
from pipeline.tenants.api_keys import ApiKeys, Grant
from tests.support.api_service import (
    ADD,
    LIST,
    LIVES,
    MAYA,
    SEARCH,
    error_of,
)
from tests.support.tenant import KEYS, Tenant


async def test_a_key_is_shown_once_and_listed_by_its_prefix(tenant: Tenant) -> None:
    made = await tenant.key(name="chat backend", scope="read")
    listed = (await tenant.client.get(KEYS)).json()["results"]
    assert listed[0] == {name: value for name, value in made.items() if name != "key"}
    assert made["key"].startswith(listed[0]["prefix"])
    assert (listed[0]["name"], listed[0]["scope"]) == ("chat backend", "read")
    assert made["key"] not in (await tenant.client.get(KEYS)).text


async def test_the_ledger_holds_no_key_in_clear(tenant: Tenant) -> None:
    made = await tenant.key()
    async with tenant.ledger.engine.connect() as connection:
        rows = (
            await connection.execute(select(text("api_keys::text")).select_from(api_keys))
        ).all()
    assert rows
    assert made["key"] not in str(rows)
    assert made["key"][10:] not in str(rows)


async def test_a_key_opens_the_project_it_was_made_for(tenant: Tenant) -> None:
    other = (await tenant.client.post(tenant.projects, json={"name": "another"})).json()
    key = await tenant.key(project_id=other["project_id"])
    headers = {"Authorization": f"Token {key['key']}"}
    ping = (await tenant.client.get("/v1/ping/", headers=headers)).json()
    assert ping["project_id"] == other["project_id"] == key["project_id"]
    assert ping["org_id"] == str(tenant.service.engine.project.organization_id)


async def test_a_revoked_key_opens_nothing_from_then_on(tenant: Tenant) -> None:
    key = await tenant.key()
    assert await tenant.ask(key, "GET", "/v1/ping/") == 200
    for _ in range(2):
        assert (await tenant.client.delete(f"{KEYS}{key['id']}/")).status_code == 200
        assert await tenant.ask(key, "GET", "/v1/ping/") == 401
    [row] = [k for k in (await tenant.client.get(KEYS)).json()["results"] if k["id"] == key["id"]]
    assert row["revoked_at"]


async def test_a_key_ends_at_its_time(tenant: Tenant) -> None:
    key = await tenant.key(expires_at="2999-01-01T00:00:00Z")
    assert await tenant.ask(key, "GET", "/v1/ping/") == 200
    async with tenant.ledger.engine.begin() as connection:
        ended = update(api_keys).where(api_keys.c.prefix == key["prefix"])
        await connection.execute(ended.values(expires_at=func.now()))
    tenant.service.api.keys.forget()
    assert await tenant.ask(key, "GET", "/v1/ping/") == 401


class ExpiringKeys(ApiKeys):
    """Keys that expire as soon as they are looked up."""

    async def grants(self, digests: Collection[bytes]) -> Mapping[bytes, Grant]:
        grants = await super().grants(digests)
        return {digest: replace(grant, ends_in_s=0.0) for digest, grant in grants.items()}


async def test_a_key_is_not_remembered_beyond_its_time(tenant: Tenant) -> None:
    ring = KeyRing(ExpiringKeys(tenant.ledger.engine))
    first = await ring.grant(tenant.service.key)
    assert first is not None
    assert await ring.grant(tenant.service.key) is not first


@pytest.mark.parametrize("given", ["2001-01-01T00:00:00Z", "soon", True])
async def test_a_key_cannot_be_made_for_a_time_that_is_over(tenant: Tenant, given: object) -> None:
    answer = await tenant.client.post(KEYS, json={"name": "late", "expires_at": given})
    assert answer.status_code == 400
    assert "expires_at" in error_of(answer)
    assert [key["name"] for key in (await tenant.client.get(KEYS)).json()["results"]] == ["first"]


@pytest.mark.parametrize(
    "body", [{}, {"name": " "}, {"name": "x", "scope": "root"}, {"name": "x", "member": "nobody"}]
)
async def test_a_key_that_makes_no_sense_is_refused(
    tenant: Tenant, body: dict[str, object]
) -> None:
    assert (await tenant.client.post(KEYS, json=body)).status_code == 400


async def test_the_last_lasting_admin_key_cannot_be_revoked(tenant: Tenant) -> None:
    [first] = (await tenant.client.get(KEYS)).json()["results"]
    await tenant.key(scope="admin", expires_at="2999-01-01T00:00:00Z")
    await tenant.key(scope="write")
    refused = await tenant.client.delete(f"{KEYS}{first['id']}/")
    assert refused.status_code == 409
    assert "last admin key" in error_of(refused)
    second = await tenant.key(scope="admin")
    assert (await tenant.client.delete(f"{KEYS}{first['id']}/")).status_code == 200
    assert await tenant.ask(second, "GET", KEYS) == 200


async def test_a_reading_key_reads_and_gets_the_reason_why_it_cannot_write(tenant: Tenant) -> None:
    await tenant.service.add("I like jazz.")
    key = await tenant.key(scope="read")
    headers = {"Authorization": f"Token {key['key']}"}
    assert await tenant.ask(key, "POST", LIST, filters=MAYA) == 200
    assert await tenant.ask(key, "POST", SEARCH, query="jazz", filters=MAYA) == 200
    refused = await tenant.client.post(ADD, json=LIVES, headers=headers)
    assert refused.status_code == 403
    assert error_of(refused) == "This takes a key of scope write; this one's is read."
    assert not tenant.service.engine.hints.waiting


async def test_a_writing_key_writes_and_does_not_administer(tenant: Tenant) -> None:
    key = await tenant.key(scope="write")
    assert await tenant.ask(key, "POST", ADD, **LIVES) == 200
    assert await tenant.ask(key, "GET", KEYS) == 403
    assert await tenant.ask(key, "POST", KEYS, name="more") == 403
    assert await tenant.ask(key, "PATCH", tenant.project, name="mine now") == 403
    assert await tenant.ask(key, "POST", tenant.projects, name="more") == 403


async def test_only_an_admin_key_sees_the_organizations_other_projects(tenant: Tenant) -> None:
    other = (await tenant.client.post(tenant.projects, json={"name": "another"})).json()
    path = f"{tenant.projects}{other['project_id']}/"
    names = [row["name"] for row in (await tenant.client.get(tenant.projects)).json()]
    assert names == ["mine", "another"]
    assert (await tenant.client.get(path)).json()["name"] == "another"
    key = await tenant.key(scope="write")
    headers = {"Authorization": f"Token {key['key']}"}
    seen = (await tenant.client.get(tenant.projects, headers=headers)).json()
    assert [row["name"] for row in seen] == ["mine"]
    assert await tenant.ask(key, "GET", tenant.project) == 200
    assert await tenant.ask(key, "GET", path) == 404


async def test_a_key_over_its_limit_gets_the_seconds_to_wait(tenant: Tenant) -> None:
    api = tenant.service.api
    limited = KeyRing(tenant.ledger.keys, RateLimit(2))
    tenant.service.app.state.api = replace(api, keys=limited)
    answers = [await tenant.client.get("/v1/ping/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {"2"}
    assert 0 < int(answers[2].headers["Retry-After"]) <= 30
    assert 0 < int(answers[2].headers["X-RateLimit-Reset"]) <= 60
    assert "requests a minute" in error_of(answers[2])
    # A 404 counts as a request, and has the headers of the rate limit.
    tenant.service.app.state.api = replace(api, keys=KeyRing(tenant.ledger.keys, RateLimit(9)))
    missing = await tenant.client.get(f"/v1/event/{uuid4()}/")
    assert (missing.status_code, missing.headers["X-RateLimit-Remaining"]) == (404, "8")


async def test_without_a_limit_no_header_speaks_of_one(tenant: Tenant) -> None:
    answer = await tenant.client.get("/v1/ping/")
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]
