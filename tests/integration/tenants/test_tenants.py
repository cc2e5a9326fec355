"""Organizations, projects, members and keys: permissions, and how they end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlalchemy import func, select

from api.auth.key_cache import KeyRing
from pipeline.ledger.tables import metadata
from pipeline.stores import Ledger
from pipeline.tenants.api_keys import ApiKeys, Grant
from tests.support.api_service import (
    ADD,
    LIVES,
)
from tests.support.tenant import NOOR, ORGS, Tenant


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


async def rows_of_all_tables(ledger: Ledger) -> dict[str, int]:
    """Number of rows of each table but those that grow with requests and with each minute."""
    await ledger.balance.fold()
    async with ledger.engine.connect() as connection:
        return {
            name: await connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
            if name not in ("audit_entries", "queue_samples")
        }


class Broken(ApiKeys):
    """Keys whose lookup raises an unexpected error."""

    async def grants(self, digests: Collection[bytes]) -> Mapping[bytes, Grant]:
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
