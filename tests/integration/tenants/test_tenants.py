"""Organizations, projects, members and keys: permissions, and how they end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import exists, func, select, text, update

from api.auth.key_cache import KeyRing
from api.auth.rate_limit import RateLimit
from pipeline.ledger.tables import api_keys, memories, metadata, projects
from pipeline.stores import Ledger
from pipeline.tenants.api_keys import ApiKeys, Grant
from tests.integration.api.test_bad_input import (
    ADD,
    LIST,
    LIVES,
    MAYA,
    SEARCH,
    Service,
    said,
    serving,
)

ORGS, KEYS = "/api/v1/orgs/organizations/", "/v1/keys/"
NOOR = "noor@example.org"


@dataclass
class Tenant:
    """A client that administers the organization of the service's project."""

    service: Service
    client: httpx.AsyncClient

    @property
    def projects(self) -> str:
        return f"{ORGS}{self.service.engine.project.organization_id}/projects/"

    @property
    def project(self) -> str:
        return f"{self.projects}{self.service.engine.project.id}/"

    @property
    def ledger(self) -> Ledger:
        return self.service.engine.ledger

    async def key(self, **body: object) -> dict[str, Any]:
        answer = await self.client.post(KEYS, json={"name": "a key"} | body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def ask(self, key: dict[str, Any], method: str, path: str, **body: object) -> int:
        """Status of a request with this key."""
        headers = {"Authorization": f"Token {key['key']}"}
        answer = await self.client.request(method, path, json=body or None, headers=headers)
        return answer.status_code


@pytest.fixture
async def tenant(ledger: Ledger) -> AsyncIterator[Tenant]:
    async with serving(ledger) as service:
        yield Tenant(service, service.client)


def same(*answers: httpx.Response) -> set[tuple[int, str]]:
    return {(answer.status_code, said(answer)) for answer in answers}


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


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

    async def grant(self, key: str) -> Grant | None:
        grant = await super().grant(key)
        return grant and replace(grant, ends_in_s=0.0)


async def test_a_key_is_not_remembered_beyond_its_time(tenant: Tenant) -> None:
    ring = KeyRing(ExpiringKeys(tenant.ledger.engine))
    first = await ring.grant(tenant.service.key)
    assert first is not None
    assert await ring.grant(tenant.service.key) is not first


@pytest.mark.parametrize("given", ["2001-01-01T00:00:00Z", "soon", True])
async def test_a_key_cannot_be_made_for_a_time_that_is_over(tenant: Tenant, given: object) -> None:
    answer = await tenant.client.post(KEYS, json={"name": "late", "expires_at": given})
    assert answer.status_code == 400
    assert "expires_at" in said(answer)
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
    assert "last admin key" in said(refused)
    second = await tenant.key(scope="admin")
    assert (await tenant.client.delete(f"{KEYS}{first['id']}/")).status_code == 200
    assert await tenant.ask(second, "GET", KEYS) == 200


# ── scopes ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_reading_key_reads_and_is_told_why_it_cannot_write(tenant: Tenant) -> None:
    await tenant.service.add("I like jazz.")
    key = await tenant.key(scope="read")
    headers = {"Authorization": f"Token {key['key']}"}
    assert await tenant.ask(key, "POST", LIST, filters=MAYA) == 200
    assert await tenant.ask(key, "POST", SEARCH, query="jazz", filters=MAYA) == 200
    refused = await tenant.client.post(ADD, json=LIVES, headers=headers)
    assert refused.status_code == 403
    assert said(refused) == "This takes a key of scope write; this one's is read."
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


# ── projects named in a request ──────────────────────────────────────────────────────────────────


async def test_a_project_named_beside_the_key_has_to_be_the_keys_own(tenant: Tenant) -> None:
    own = (await tenant.client.get("/v1/ping/")).json()
    names = {"org_id": own["org_id"], "project_id": own["project_id"]}
    assert (await tenant.client.post(ADD, json=LIVES | names, params=names)).status_code == 200
    other = (await tenant.client.post(tenant.projects, json={"name": "another"})).json()
    for name, value in {"org_id": str(uuid4()), "project_id": other["project_id"]}.items():
        for more in ({"params": {name: value}}, {"json": LIVES | {name: value}}):
            answer = await tenant.client.post(ADD, **({"json": LIVES} | more))
            assert (answer.status_code, said(answer)) == (404, "Project not found.")
        both = {name: [own[name], value]}
        assert (await tenant.client.get("/v1/events/", params=both)).status_code == 404
    assert (await tenant.client.get("/v1/events/")).json()["count"] == 1


async def test_a_memory_may_speak_of_projects(tenant: Tenant) -> None:
    words = '"project_id": "p", and "org_id" too'
    body = {"messages": words, "metadata": {"project_id": "theirs"}} | MAYA
    assert (await tenant.client.post(ADD, json=body)).status_code == 200


# ── organizations ────────────────────────────────────────────────────────────────────────────────


async def test_the_key_sees_its_own_organization_and_no_other(tenant: Tenant) -> None:
    [own] = (await tenant.client.get(ORGS)).json()
    assert (await tenant.client.get(f"{ORGS}{own['org_id']}/")).json() == own
    await tenant.ledger.projects.create("theirs")
    assert len((await tenant.client.get(ORGS)).json()) == 1


async def test_only_the_first_organization_founds_others(tenant: Tenant) -> None:
    refused = await tenant.client.post(ORGS, json={"name": "more"})
    assert refused.status_code == 403
    _, key = await tenant.ledger.projects.create("operator", operator=True)
    headers = {"Authorization": f"Token {key}"}
    made = (await tenant.client.post(ORGS, json={"name": "Harbour"}, headers=headers)).json()
    theirs = {"Authorization": f"Token {made['key']}"}
    [organization] = (await tenant.client.get(ORGS, headers=theirs)).json()
    assert (organization["name"], organization["org_id"]) == ("Harbour", made["org_id"])
    assert (await tenant.client.post(ORGS, json={"name": "x"}, headers=theirs)).status_code == 403


async def another(tenant: Tenant) -> dict[str, str]:
    """Headers with the admin key of an organization that is not the operator's."""
    _, key = await tenant.ledger.projects.create("operator", operator=True)
    made = await tenant.client.post(
        ORGS, json={"name": "Harbour"}, headers={"Authorization": f"Token {key}"}
    )
    assert made.status_code == 201
    return {"Authorization": f"Token {made.json()['key']}"}


async def test_a_member_of_an_organization_is_one_of_all_its_projects(tenant: Tenant) -> None:
    headers = await another(tenant)
    [own] = (await tenant.client.get(ORGS, headers=headers)).json()
    here = f"{ORGS}{own['org_id']}/"
    await tenant.client.post(f"{here}projects/", json={"name": "second"}, headers=headers)

    async def ask(method: str, **body: str) -> int:
        answer = await tenant.client.request(method, f"{here}members/", json=body, headers=headers)
        return answer.status_code

    async def roles() -> list[list[str]]:
        listed = (await tenant.client.get(f"{here}projects/", headers=headers)).json()
        return [[member["role"] for member in project["members"]] for project in listed]

    assert await ask("POST", email=NOOR, role="READER") == 201
    assert await ask("POST", email=NOOR, role="READER") == 409
    assert await roles() == [["READER"], ["READER"]]
    assert await ask("PUT", email=NOOR, role="OWNER") == 200
    assert await roles() == [["OWNER"], ["OWNER"]]
    [member] = (await tenant.client.get(f"{here}members/", headers=headers)).json()["members"]
    assert (member["user_id"], member["role"]) == (NOOR, "OWNER")
    assert await ask("DELETE", email=NOOR) == 200
    assert await ask("DELETE", email=NOOR) == 404
    assert await ask("DELETE") == 400
    assert await roles() == [[], []]


async def test_an_organization_is_deleted_once_it_is_empty(tenant: Tenant) -> None:
    headers = await another(tenant)
    before = await rows_of_all_tables(tenant.ledger)
    headers = await another(tenant)
    [own] = (await tenant.client.get(ORGS, headers=headers)).json()
    path = f"{ORGS}{own['org_id']}/"
    assert (await tenant.client.post(ADD, json=LIVES, headers=headers)).status_code == 200
    await tenant.service.engine.drain()
    assert (await tenant.client.delete(path, headers=headers)).status_code == 409
    await tenant.client.delete("/v1/memories/?user_id=maya", headers=headers)
    assert (await tenant.client.delete(path, headers=headers)).status_code == 200
    assert (await tenant.client.get(ORGS, headers=headers)).status_code == 401
    after = await rows_of_all_tables(tenant.ledger)
    assert {name: count for name, count in after.items() if count != before[name]} == {
        # `another` creates an operator each time.
        "organizations": before["organizations"] + 1,
        "projects": before["projects"] + 1,
        "api_keys": before["api_keys"] + 1,
    }


async def test_the_operators_organization_is_not_deleted(tenant: Tenant) -> None:
    _, key = await tenant.ledger.projects.create("operator", operator=True)
    headers = {"Authorization": f"Token {key}"}
    [own] = (await tenant.client.get(ORGS, headers=headers)).json()
    refused = await tenant.client.delete(f"{ORGS}{own['org_id']}/", headers=headers)
    assert refused.status_code == 403


# ── projects ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_project_is_whole_whatever_fields_are_asked_for(tenant: Tenant) -> None:
    whole = (await tenant.client.get(tenant.project)).json()
    some = await tenant.client.get(tenant.project, params={"fields": ["name", "decay"]})
    assert some.json() == whole
    assert whole["project_id"] == str(tenant.service.engine.project.id)
    assert (whole["name"], whole["is_default"], whole["members"]) == ("mine", True, [])
    assert (whole["multilingual"], whole["decay"], whole["enable_graph"]) == (False, False, True)
    assert whole.keys() >= {"custom_instructions", "custom_categories", "agent_custom_instructions"}


async def test_what_is_set_on_a_project_is_read_back_and_the_rest_stays(tenant: Tenant) -> None:
    first = {
        "custom_instructions": "Only drinks.",
        "agent_custom_instructions": "Only promises.",
        "custom_categories": [{"tea": "all about tea"}, {"coffee": "all about coffee"}],
        "inclusion_prompt": "drinks",
        "exclusion_prompt": "jokes",
        "description": "A tea house",
        "multilingual": True,
    }
    then = {"decay": True, "memory_depth": "deep", "usecase_setting": 2, "name": "renamed"}
    for body in (first, then):
        answer = await tenant.client.patch(tenant.project, json=body | {"unknown": 1})
        assert answer.json() == {"message": "Project updated successfully"}
    shown = (await tenant.client.get(tenant.project)).json()
    categories = shown.pop("custom_categories")
    assert sorted(map(str, categories)) == sorted(map(str, first.pop("custom_categories")))  # type: ignore[call-overload]
    assert shown.items() >= (first | then).items()
    assert shown["usecase"] == "2"
    assert shown["updated_at"] > shown["created_at"]


@pytest.mark.parametrize("empty", ["", None])
async def test_an_empty_text_clears_and_leaves_the_rest(tenant: Tenant, empty: object) -> None:
    await tenant.client.patch(
        tenant.project,
        json={"custom_instructions": "x", "description": "y", "custom_categories": [{"a": "b"}]},
    )
    await tenant.client.patch(
        tenant.project, json={"custom_instructions": empty, "custom_categories": [], "name": None}
    )
    body = (await tenant.client.get(tenant.project)).json()
    assert (body["custom_instructions"], body["custom_categories"]) == ("", [])
    assert (body["description"], body["name"]) == ("y", "mine")
    async with tenant.ledger.engine.connect() as connection:
        assert await connection.scalar(select(projects.c.custom_categories.is_(None)))


async def test_a_projects_instructions_reach_its_own_events_and_no_others(tenant: Tenant) -> None:
    engine = tenant.service.engine
    await tenant.client.patch(tenant.project, json={"custom_instructions": "Only drinks."})
    event_id = await engine.add("I like tea.")
    _, batch = await engine.claim(engine.hints.waiting[0])
    assert batch is not None
    assert [event.id for event in batch.events] == [event_id]
    assert batch.options.instructions.custom == "Only drinks."


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"nothing": "known"},
        {"name": "  "},
        {"custom_categories": ["tea"]},
        {"custom_categories": "tea"},
        {"decay": "maybe"},
        {"custom_instructions": "x" * 20_001},
        {"name": "a\x00b"},
    ],
)
async def test_a_change_that_makes_no_sense_is_refused_and_changes_nothing(
    tenant: Tenant, body: dict[str, object]
) -> None:
    before = (await tenant.client.get(tenant.project)).json()
    answer = await tenant.client.patch(tenant.project, json=body)
    assert answer.status_code == 400
    assert said(answer)
    assert (await tenant.client.get(tenant.project)).json() == before


async def test_a_new_project_is_empty_and_its_key_is_asked_for(tenant: Tenant) -> None:
    await tenant.service.add("I like jazz.")
    made = await tenant.client.post(tenant.projects, json={"name": "b", "description": "second"})
    key = await tenant.key(project_id=made.json()["project_id"])
    headers = {"Authorization": f"Token {key['key']}"}
    answer = await tenant.client.post(LIST, json={"filters": MAYA}, headers=headers)
    assert answer.json()["count"] == 0


# ── deleting a project ───────────────────────────────────────────────────────────────────────────


async def test_a_project_that_remembers_is_not_deleted(tenant: Tenant) -> None:
    await tenant.key(scope="admin")
    await tenant.client.post(ADD, json=LIVES)
    pending = await tenant.client.delete(tenant.project)
    await tenant.service.engine.drain()
    stored = await tenant.client.delete(tenant.project)
    assert same(pending, stored) == {(409, said(stored))}
    assert "Delete its memories" in said(stored)
    assert len(await tenant.service.listed()) == 1


async def test_an_emptied_project_leaves_nothing_behind_and_its_neighbours_alone(
    tenant: Tenant,
) -> None:
    service, ledger = tenant.service, tenant.ledger
    neighbour, _ = await ledger.projects.create("theirs")
    beside = replace(service.engine, project=neighbour)
    await beside.add("I like jazz.")
    await beside.drain()
    before = await rows_of_all_tables(ledger)
    made = (await tenant.client.post(tenant.projects, json={"name": "short-lived"})).json()
    path = f"{tenant.projects}{made['project_id']}/"
    await tenant.client.post(f"{path}members/", json={"email": NOOR, "role": "OWNER"})
    key = await tenant.key(project_id=made["project_id"], scope="admin", member=NOOR)
    headers = {"Authorization": f"Token {key['key']}", "Idempotency-Key": "once"}
    for words in ("I live in Berlin.", "I work at Initech with Ada."):
        answer = await tenant.client.post(ADD, json={"messages": words} | MAYA, headers=headers)
        headers.pop("Idempotency-Key", None)
        assert answer.status_code == 200
    await service.engine.drain()
    begun = (await tenant.client.post("/v1/replays/", json=MAYA, headers=headers)).json()
    await service.engine.drain()
    for row in (await tenant.client.post(LIST, json={"filters": MAYA}, headers=headers)).json()[
        "results"
    ]:
        await tenant.client.delete(f"/v1/memories/{row['id']}/", headers=headers)
    assert (await tenant.client.delete(path)).status_code == 409  # the replay still has memories
    await tenant.client.delete(f"/v1/replays/{begun['id']}/", headers=headers)
    assert (await tenant.client.delete(path)).status_code == 200
    assert await rows_of_all_tables(ledger) == before
    assert await tenant.ask(key, "GET", "/v1/ping/") == 401
    assert (await tenant.client.get(path)).status_code == 404


async def rows_of_all_tables(ledger: Ledger) -> dict[str, int]:
    await ledger.books.fold()
    async with ledger.engine.connect() as connection:
        return {
            name: await connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }


async def test_a_project_whose_index_is_owed_a_write_is_not_deleted(tenant: Tenant) -> None:
    """After the project is deleted, no process would delete the vector."""
    await tenant.key(scope="admin")
    await tenant.service.add("I like jazz.")
    async with tenant.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(state="RETIRED"))
    assert (await tenant.client.delete(tenant.project)).status_code == 409


async def test_the_project_of_the_last_admin_key_is_not_deleted(tenant: Tenant) -> None:
    refused = await tenant.client.delete(tenant.project)
    assert refused.status_code == 409
    assert "last admin key" in said(refused)
    async with tenant.ledger.engine.connect() as connection:
        assert await connection.scalar(select(exists(select(projects.c.id))))


# ── members ──────────────────────────────────────────────────────────────────────────────────────


async def test_members_come_change_and_go(tenant: Tenant) -> None:
    members = f"{tenant.project}members/"

    async def listed() -> list[tuple[str, str]]:
        rows = (await tenant.client.get(members)).json()["members"]
        assert (await tenant.client.get(tenant.project)).json()["members"] == rows
        return [(row["email"], row["role"]) for row in rows]

    await tenant.client.post(members, json={"email": NOOR.title()})
    await tenant.client.post(members, json={"email": "kim@example.org", "role": "OWNER"})
    assert await listed() == [(NOOR, "READER"), ("kim@example.org", "OWNER")]
    again = await tenant.client.post(members, json={"email": NOOR, "role": "OWNER"})
    assert again.status_code == 409
    await tenant.client.put(members, json={"email": NOOR, "role": "OWNER"})
    assert await listed() == [(NOOR, "OWNER"), ("kim@example.org", "OWNER")]
    gone = await tenant.client.delete(members, params={"email": NOOR.upper()})
    assert gone.status_code == 200
    assert await listed() == [("kim@example.org", "OWNER")]
    put = await tenant.client.put(members, json={"email": NOOR, "role": "OWNER"})
    delete = await tenant.client.delete(members, params={"email": NOOR})
    assert {status for status, _ in same(put, delete)} == {404}


@pytest.mark.parametrize(
    "body", [{}, {"email": "no address"}, {"email": NOOR, "role": "EDITOR"}, {"role": "OWNER"}]
)
async def test_a_member_without_an_address_or_a_known_role_is_refused(
    tenant: Tenant, body: dict[str, object]
) -> None:
    assert (await tenant.client.post(f"{tenant.project}members/", json=body)).status_code == 400


async def test_a_members_key_follows_the_role_and_ends_with_the_membership(
    tenant: Tenant,
) -> None:
    members = f"{tenant.project}members/"
    await tenant.client.post(members, json={"email": NOOR})
    key = await tenant.key(scope="write", member=NOOR)
    assert key["scope"] == "read"
    assert await tenant.ask(key, "POST", ADD, **LIVES) == 403
    await tenant.client.put(members, json={"email": NOOR, "role": "OWNER"})
    assert await tenant.ask(key, "POST", ADD, **LIVES) == 200
    await tenant.client.delete(members, params={"email": NOOR})
    assert await tenant.ask(key, "GET", "/v1/ping/") == 401
    await tenant.client.post(members, json={"email": NOOR, "role": "OWNER"})
    assert await tenant.ask(key, "GET", "/v1/ping/") == 401


async def another_project(tenant: Tenant) -> str:
    answer = await tenant.client.post(tenant.projects, json={"name": "second"})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["project_id"])


async def mint(tenant: Tenant, by: dict[str, Any], **body: object) -> httpx.Response:
    headers = {"Authorization": f"Token {by['key']}"}
    return await tenant.client.post(KEYS, json={"name": "minted"} | body, headers=headers)


async def owners_key(tenant: Tenant, *projects: str) -> dict[str, Any]:
    """Admin key of an owner of the service's project who is also a member of `projects`."""
    for project_id in (str(tenant.service.engine.project.id), *projects):
        members = f"{tenant.projects}{project_id}/members/"
        await tenant.client.post(members, json={"email": NOOR, "role": "OWNER"})
    return await tenant.key(scope="admin", member=NOOR)


async def test_what_a_members_key_makes_is_the_members(tenant: Tenant) -> None:
    second = await another_project(tenant)
    key = await owners_key(tenant)
    stranger = await mint(tenant, key, scope="admin", project_id=second)
    assert (stranger.status_code, "member" in said(stranger)) == (404, True)
    other = await mint(tenant, key, member="ada@example.org")
    assert (other.status_code, NOOR in said(other)) == (403, True)
    made = (await mint(tenant, key, scope="admin")).json()
    assert (made["member"], made["created_by"]) == (NOOR, key["id"])
    await tenant.client.put(f"{tenant.project}members/", json={"email": NOOR, "role": "READER"})
    assert await tenant.ask(made, "POST", ADD, **LIVES) == 403


@pytest.mark.parametrize("end", ["demoted", "removed", "revoked"])
async def test_no_key_outlives_the_membership_it_was_made_with(tenant: Tenant, end: str) -> None:
    second = await another_project(tenant)
    key = await owners_key(tenant, second)
    made = (await mint(tenant, key, scope="admin", project_id=second)).json()
    third = (await mint(tenant, made, scope="write", project_id=second)).json()
    assert await tenant.ask(third, "GET", "/v1/ping/") == 200
    members = f"{tenant.project}members/"
    if end == "demoted":
        await tenant.client.put(members, json={"email": NOOR, "role": "READER"})
    elif end == "removed":
        await tenant.client.delete(members, params={"email": NOOR})
    else:
        await tenant.client.delete(f"{KEYS}{key['id']}/")
    assert await tenant.ask(made, "GET", "/v1/ping/") == 401
    assert await tenant.ask(third, "GET", "/v1/ping/") == 401


async def test_what_an_expiring_key_makes_expires_no_later(tenant: Tenant) -> None:
    key = await tenant.key(scope="admin", expires_at="2999-01-01T00:00:00Z")
    made = (await mint(tenant, key)).json()
    assert made["expires_at"] == key["expires_at"]
    sooner = (await mint(tenant, key, expires_at="2998-01-01T00:00:00Z")).json()
    assert sooner["expires_at"].startswith("2998")
    later = await mint(tenant, key, expires_at="3000-01-01T00:00:00Z")
    assert (later.status_code, "2999" in said(later)) == (400, True)
    await tenant.client.delete(f"{KEYS}{key['id']}/")
    assert await tenant.ask(made, "GET", "/v1/ping/") == 401


async def test_what_a_lasting_key_made_ends_with_it_on_request(tenant: Tenant) -> None:
    parent = await tenant.key(scope="admin")
    child = (await mint(tenant, parent, scope="admin")).json()
    grandchild = (await mint(tenant, child)).json()
    other = await tenant.key()
    assert (await tenant.client.delete(f"{KEYS}{parent['id']}/")).status_code == 200
    assert await tenant.ask(child, "GET", "/v1/ping/") == 200
    all_of_it = f"{KEYS}{parent['id']}/?descendants=true"
    assert (await tenant.client.delete(all_of_it)).status_code == 200
    assert await tenant.ask(child, "GET", "/v1/ping/") == 401
    assert await tenant.ask(grandchild, "GET", "/v1/ping/") == 401
    assert await tenant.ask(other, "GET", "/v1/ping/") == 200
    listed = (await tenant.client.get(KEYS)).json()["results"]
    assert {row["id"]: row["created_by"] for row in listed}[grandchild["id"]] == child["id"]


async def test_a_reading_key_sees_no_more_of_a_webhooks_address_than_its_host(
    tenant: Tenant,
) -> None:
    path = f"/api/v1/webhooks/projects/{tenant.service.engine.project.id}/"
    body = {
        "name": "x",
        "url": "https://example.com:8443/t/secret?k=1",
        "event_types": ["memory_add"],
    }
    assert (await tenant.client.post(path, json=body)).status_code == 201
    key = await tenant.key(scope="read")
    headers = {"Authorization": f"Token {key['key']}"}
    [seen] = (await tenant.client.get(path, headers=headers)).json()
    assert seen["url"] == "https://example.com/…"
    [whole] = (await tenant.client.get(path)).json()
    assert whole["url"] == body["url"]


async def test_a_key_cannot_be_made_for_somebody_who_is_no_member(tenant: Tenant) -> None:
    answer = await tenant.client.post(KEYS, json={"name": "x", "member": NOOR})
    assert answer.status_code == 404
    assert "member" in said(answer)


# ── rate limits ──────────────────────────────────────────────────────────────────────────────────


async def test_a_key_that_asks_too_often_is_told_when_to_come_back(tenant: Tenant) -> None:
    api = tenant.service.api
    limited = KeyRing(tenant.ledger.keys, RateLimit(2))
    tenant.service.app.state.api = replace(api, keys=limited)
    answers = [await tenant.client.get("/v1/ping/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {"2"}
    assert 0 < int(answers[2].headers["Retry-After"]) <= 30
    assert 0 < int(answers[2].headers["X-RateLimit-Reset"]) <= 60
    assert "requests a minute" in said(answers[2])
    # A 404 counts as a request, and has the headers of the rate limit.
    tenant.service.app.state.api = replace(api, keys=KeyRing(tenant.ledger.keys, RateLimit(9)))
    missing = await tenant.client.get(f"/v1/event/{uuid4()}/")
    assert (missing.status_code, missing.headers["X-RateLimit-Remaining"]) == (404, "8")


async def test_without_a_limit_no_header_speaks_of_one(tenant: Tenant) -> None:
    answer = await tenant.client.get("/v1/ping/")
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


# ── headers of every response ────────────────────────────────────────────────────────────────────


class Broken(ApiKeys):
    """Keys whose lookup raises an unexpected error."""

    async def grant(self, key: str) -> Grant | None:
        raise ZeroDivisionError


async def test_every_answer_tells_browsers_to_guess_frame_pass_on_and_keep_nothing(
    tenant: Tenant,
) -> None:
    client, api = tenant.client, tenant.service.api
    answers = {
        "ok": await client.get("/v1/ping/"),
        "bad": await client.post(ADD, content=b"{"),
        "unknown": await client.get("/nowhere"),
        "nul": await client.get("/v1/ping/?a=%00"),
        "docs": await client.get("/docs"),
        "stranger": await client.get("/v1/ping/", headers={"Authorization": ""}),
    }
    tenant.service.app.state.api = replace(api, keys=KeyRing(Broken(tenant.ledger.engine)))
    answers["crash"] = await client.get("/v1/ping/")
    statuses = [answer.status_code for answer in answers.values()]
    assert statuses == [200, 400, 404, 400, 200, 401, 500]
    for name, answer in answers.items():
        assert answer.headers["X-Content-Type-Options"] == "nosniff", name
        assert answer.headers["X-Frame-Options"] == "DENY", name
        assert answer.headers["Referrer-Policy"] == "no-referrer", name
        assert answer.headers["Cache-Control"] == "no-store", name
