"""The audit log: who changed what, and when; without texts, without ids of users, bounded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import text, update

from pipeline.events.retention import Retention
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.tables import audit_entries
from pipeline.tenants.audit import AuditLog
from tests.support.api_service import ADD, LIST, LIVES, MAYA, SEARCH
from tests.support.console_client import browsing
from tests.support.tenant import Tenant

AUDIT = "/v1/audit/"
PUT, DELETE = ("PUT /v1/memories/{memory_id}/", "DELETE /v1/memories/{memory_id}/")


async def entries(tenant: Tenant, **query: str) -> list[dict[str, Any]]:
    answer = await tenant.client.get(AUDIT, params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def test_each_change_has_an_entry_with_its_key_target_and_status(tenant: Tenant) -> None:
    await tenant.service.add("I live in Lima.")
    [memory] = await tenant.service.listed()
    path = f"/v1/memories/{memory['id']}/"
    await tenant.client.put(path, json={"text": "User lives in Rome"})
    await tenant.client.put(f"/v1/memories/{uuid4()}/", json={"text": "x"})
    key = await tenant.key(name="desk", scope="write")
    assert await tenant.ask(key, "DELETE", path) == 200
    shown = await entries(tenant)
    assert [(row["action"], row["status"], row["key"]) for row in shown] == [
        (DELETE, 200, "desk"),
        ("POST /v1/keys/", 200, "first"),
        (PUT, 404, "first"),
        (PUT, 200, "first"),
    ]
    assert (shown[0]["target"], shown[1]["target"]) == (memory["id"], key["id"])
    assert [row["action"] for row in await entries(tenant, key_id=key["id"])] == [DELETE]


async def test_adds_lists_and_searches_have_none(tenant: Tenant) -> None:
    await tenant.client.post(ADD, json=LIVES)
    await tenant.client.post(LIST, json={"filters": MAYA})
    await tenant.client.post(SEARCH, json={"query": "home", "filters": MAYA})
    assert await entries(tenant) == []


async def test_forms_of_the_console_and_a_users_token_have_one_each(tenant: Tenant) -> None:
    await tenant.service.add("I live in Lima.")
    [memory] = await tenant.service.listed()
    async with browsing(tenant.service.app, tenant.service.key) as browser:
        await browser.send(f"/console/memories/{memory['id']}/pin", pinned="1")
        page = await browser.shown("/console/audit")
        assert "Pin or unpin: no model changes a pinned memory" in page
    body = {"user_id": "maya", "rights": ["delete"]}
    token = (await tenant.client.post("/v1/user-tokens/", json=body)).json()
    headers = {"Authorization": f"Token {token['token']}"}
    await tenant.client.delete(f"/v1/memories/{memory['id']}/", headers=headers)
    newest, made, pinned, signed_in = await entries(tenant)
    assert (newest["action"], newest["user_token_id"]) == (DELETE, token["id"])
    assert made["target"] == token["id"]
    assert pinned["action"] == "POST /console/memories/{memory_id}/pin"
    assert signed_in["action"] == "POST /console/sign-in"


async def test_entries_name_no_user(tenant: Tenant) -> None:
    await tenant.service.add("I live in Zanzibar.", user_id="maya-4711")
    await tenant.client.delete("/v2/entities/user/maya-4711/")
    await tenant.client.post("/v1/erasures/", json={"user_id": "maya-4711"})
    shown = await entries(tenant)
    assert [row["action"] for row in shown] == [
        "POST /v1/erasures/",
        "DELETE /v2/entities/{entity_type}/{entity_id}/",
    ]
    assert "4711" not in str(shown)
    receipt = await tenant.client.get(f"/v1/erasures/{shown[0]['target']}/")
    assert receipt.status_code == 200


class Full(AuditLog):
    """A log that takes no entry."""

    async def begin(self, *args: Any) -> int:
        raise LedgerUnavailable(ConnectionError())


async def test_without_an_entry_nothing_is_changed(tenant: Tenant, monkeypatch: Any) -> None:
    await tenant.service.add("I live in Lima.")
    [memory] = await tenant.service.listed()
    monkeypatch.setattr(AuditLog, "begin", Full.begin)
    answer = await tenant.client.delete(f"/v1/memories/{memory['id']}/")
    assert answer.status_code == 503
    assert [row["id"] for row in await tenant.service.listed()] == [memory["id"]]


async def test_pages_continue_behind_the_last_entry(tenant: Tenant) -> None:
    for name in ("a", "b", "c"):
        await tenant.key(name=name)
    first = (await tenant.client.get(AUDIT, params={"limit": 2})).json()
    rest = (await tenant.client.get(AUDIT, params={"limit": 2, "before": first["next"]})).json()
    assert [len(page["results"]) for page in (first, rest)] == [2, 1]
    assert rest["next"] is None
    assert len({row["id"] for row in first["results"] + rest["results"]}) == 3


async def test_old_entries_are_deleted(tenant: Tenant) -> None:
    engine = tenant.ledger.engine
    await tenant.key(name="old")
    async with engine.begin() as connection:
        old = audit_entries.c.at - text("interval '2 days'")
        await connection.execute(update(audit_entries).values(at=old))
    await tenant.key(name="new")
    day = timedelta(days=1)
    retention = Retention(engine, keys_for=day, outputs_for=day)
    assert await retention.forget_audit() == 0
    assert await Retention(engine, keys_for=day, outputs_for=day, audit_for=day).forget_audit() == 1
    assert len(await entries(tenant)) == 1
