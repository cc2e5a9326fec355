"""Members: their roles, and the keys that end with a membership."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.api_service import (
    ADD,
    LIVES,
    error_of,
)
from tests.support.tenant import KEYS, NOOR, ORGS, Tenant, same


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
    assert (stranger.status_code, "Project" in error_of(stranger)) == (404, True)
    other = await mint(tenant, key, member="ada@example.org")
    assert (other.status_code, NOOR in error_of(other)) == (403, True)
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


async def test_an_owner_administers_the_own_projects_and_not_the_organization(
    tenant: Tenant,
) -> None:
    second, third = await another_project(tenant), await another_project(tenant)
    key = await owners_key(tenant, third)
    organization = tenant.projects.removesuffix("projects/")
    noor = {"email": NOOR, "role": "OWNER"}
    for method, path, body in [
        ("POST", tenant.projects, {"name": "more"}),
        ("POST", f"{organization}members/", noor),
        ("PUT", f"{organization}members/", noor),
        ("DELETE", f"{organization}members/", noor),
        ("DELETE", organization, {}),
        ("POST", ORGS, {"name": "more"}),
    ]:
        assert await tenant.ask(key, method, path, **body) == 403, (method, path)
    for method, path, body in [
        ("GET", f"{tenant.projects}{second}/", {}),
        ("POST", f"{tenant.projects}{second}/members/", noor),
        ("PATCH", f"{tenant.projects}{second}/", {"description": "mine"}),
        ("GET", f"{KEYS}?project_id={second}", {}),
        ("POST", KEYS, {"name": "x", "project_id": second}),
    ]:
        assert await tenant.ask(key, method, path, **body) == 404, (method, path)
    headers = {"Authorization": f"Token {key['key']}"}
    shown = (await tenant.client.get(tenant.projects, headers=headers)).json()
    assert [project["project_id"] for project in shown] == [str(tenant.service.engine.project.id)]
    for path in (tenant.project, f"{tenant.projects}{third}/"):
        assert await tenant.ask(key, "PATCH", path, description="mine") == 200
        kim = {"email": "kim@example.org"}
        assert await tenant.ask(key, "POST", f"{path}members/", **kim) == 200


async def test_an_owner_revokes_keys_of_the_own_projects_but_no_key_of_the_organization(
    tenant: Tenant,
) -> None:
    second = await another_project(tenant)
    key = await owners_key(tenant)
    writing, theirs = await tenant.key(scope="write"), await tenant.key(project_id=second)
    admin = await tenant.key(scope="admin")
    assert await tenant.ask(key, "DELETE", f"{KEYS}{theirs['id']}/") == 404
    assert await tenant.ask(key, "DELETE", f"{KEYS}{admin['id']}/") == 404
    assert await tenant.ask(key, "DELETE", f"{KEYS}{writing['id']}/") == 200
    assert await tenant.ask(admin, "GET", "/v1/ping/") == 200
    assert await tenant.ask(key, "DELETE", f"{KEYS}{key['id']}/") == 200


async def test_no_member_founds_an_organization(tenant: Tenant) -> None:
    project, operator = await tenant.ledger.projects.create("operator", operator=True)
    headers = {"Authorization": f"Token {operator}"}
    members = f"{ORGS}{project.organization_id}/projects/{project.id}/members/"
    await tenant.client.post(members, json={"email": NOOR, "role": "OWNER"}, headers=headers)
    key = await mint(tenant, {"key": str(operator)}, scope="admin", member=NOOR)
    refused = await tenant.client.post(
        ORGS, json={"name": "more"}, headers={"Authorization": f"Token {key.json()['key']}"}
    )
    assert (refused.status_code, "member" in error_of(refused)) == (403, True)


async def test_what_an_expiring_key_makes_expires_no_later(tenant: Tenant) -> None:
    key = await tenant.key(scope="admin", expires_at="2999-01-01T00:00:00Z")
    made = (await mint(tenant, key)).json()
    assert made["expires_at"] == key["expires_at"]
    sooner = (await mint(tenant, key, expires_at="2998-01-01T00:00:00Z")).json()
    assert sooner["expires_at"].startswith("2998")
    later = await mint(tenant, key, expires_at="3000-01-01T00:00:00Z")
    assert (later.status_code, "2999" in error_of(later)) == (400, True)
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


async def test_a_key_cannot_be_made_for_a_person_who_is_no_member(tenant: Tenant) -> None:
    answer = await tenant.client.post(KEYS, json={"name": "x", "member": NOOR})
    assert answer.status_code == 404
    assert "member" in error_of(answer)
