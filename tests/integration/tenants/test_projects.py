"""Projects: settings, those named in a request, and their deletion."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import exists, select, update

from pipeline.ledger.tables import memories, projects
from tests.integration.tenants.test_tenants import rows_of_all_tables
from tests.support.api_service import (
    ADD,
    LIST,
    LIVES,
    MAYA,
    error_of,
)
from tests.support.tenant import NOOR, Tenant, same


async def test_a_project_named_beside_the_key_has_to_be_the_keys_own(tenant: Tenant) -> None:
    own = (await tenant.client.get("/v1/ping/")).json()
    names = {"org_id": own["org_id"], "project_id": own["project_id"]}
    assert (await tenant.client.post(ADD, json=LIVES | names, params=names)).status_code == 200
    other = (await tenant.client.post(tenant.projects, json={"name": "another"})).json()
    for name, value in {"org_id": str(uuid4()), "project_id": other["project_id"]}.items():
        for more in ({"params": {name: value}}, {"json": LIVES | {name: value}}):
            answer = await tenant.client.post(ADD, **({"json": LIVES} | more))
            assert (answer.status_code, error_of(answer)) == (404, "Project not found.")
        both = {name: [own[name], value]}
        assert (await tenant.client.get("/v1/events/", params=both)).status_code == 404
    assert (await tenant.client.get("/v1/events/")).json()["count"] == 1


async def test_a_memory_may_speak_of_projects(tenant: Tenant) -> None:
    words = '"project_id": "p", and "org_id" too'
    body = {"messages": words, "metadata": {"project_id": "theirs"}} | MAYA
    assert (await tenant.client.post(ADD, json=body)).status_code == 200


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


async def test_a_setting_that_is_null_is_shown_as_its_default(tenant: Tenant) -> None:
    names = ("multilingual", "decay", "default_cut", "allowed_origins", "memory_depth")
    before = (await tenant.client.get(tenant.project)).json()
    origins = ["https://chat.example.org"]
    changed = {"default_cut": False, "multilingual": True, "allowed_origins": origins}
    await tenant.client.patch(tenant.project, json=changed)
    answer = await tenant.client.patch(tenant.project, json=dict.fromkeys(names))
    assert answer.status_code == 200
    shown = (await tenant.client.get(tenant.project)).json()
    assert {name: shown[name] for name in names} == {name: before[name] for name in names}


async def test_a_projects_instructions_reach_its_own_events_and_no_others(tenant: Tenant) -> None:
    engine = tenant.service.engine
    await tenant.client.patch(tenant.project, json={"custom_instructions": "Only drinks."})
    event_id = await engine.add("I like tea.")
    _, batch = await engine.claim(engine.hints.waiting[0])
    assert batch is not None
    assert [event.id for event in batch.events] == [event_id]
    assert batch.options.instructions.custom == "Only drinks."


async def test_attributes_have_the_names_that_memories_give_them(tenant: Tenant) -> None:
    given = {"Lives in": "several", "badgeNumber": "one"}
    answer = await tenant.client.patch(tenant.project, json={"custom_attributes": given})
    assert answer.status_code == 200
    shown = (await tenant.client.get(tenant.project)).json()["custom_attributes"]
    assert shown == {"residence": "several", "badge_number": "one"}
    await tenant.client.patch(tenant.project, json={"custom_attributes": None})
    assert (await tenant.client.get(tenant.project)).json()["custom_attributes"] is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"nothing": "known"},
        {"name": "  "},
        {"custom_categories": ["tea"]},
        {"custom_categories": "tea"},
        {"custom_attributes": {"locker": "two"}},
        {"custom_attributes": {"--": "one"}},
        {"custom_attributes": {f"a{n}": "one" for n in range(101)}},
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
    assert error_of(answer)
    assert (await tenant.client.get(tenant.project)).json() == before


async def test_a_new_project_is_empty_and_its_key_is_asked_for(tenant: Tenant) -> None:
    await tenant.service.add("I like jazz.")
    made = await tenant.client.post(tenant.projects, json={"name": "b", "description": "second"})
    key = await tenant.key(project_id=made.json()["project_id"])
    headers = {"Authorization": f"Token {key['key']}"}
    answer = await tenant.client.post(LIST, json={"filters": MAYA}, headers=headers)
    assert answer.json()["count"] == 0


async def test_a_project_that_remembers_is_not_deleted(tenant: Tenant) -> None:
    await tenant.key(scope="admin")
    await tenant.client.post(ADD, json=LIVES)
    pending = await tenant.client.delete(tenant.project)
    await tenant.service.engine.drain()
    stored = await tenant.client.delete(tenant.project)
    assert same(pending, stored) == {(409, error_of(stored))}
    assert "Delete its memories" in error_of(stored)
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


async def test_a_project_with_pending_vector_writes_is_not_deleted(tenant: Tenant) -> None:
    """After the project is deleted, no process would delete the vector."""
    await tenant.key(scope="admin")
    await tenant.service.add("I like jazz.")
    async with tenant.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(state="RETIRED"))
    assert (await tenant.client.delete(tenant.project)).status_code == 409


async def test_the_project_of_the_last_admin_key_is_not_deleted(tenant: Tenant) -> None:
    refused = await tenant.client.delete(tenant.project)
    assert refused.status_code == 409
    assert "last admin key" in error_of(refused)
    async with tenant.ledger.engine.connect() as connection:
        assert await connection.scalar(select(exists(select(projects.c.id))))
