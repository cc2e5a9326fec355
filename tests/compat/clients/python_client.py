"""Every public method of the official Python client, asked of a real server.

Runs inside the environment of the client's version, with nothing but that client and the standard
library: `python python_client.py sync|async`, with MEMLANE_URL and MEM0_API_KEY. Prints a line of
JSON for each method: whether it did what its users count on, and what it did instead.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from typing import Any

from python_harness import (  # type: ignore[import-not-found,unused-ignore]
    CHECKS,
    ODD,
    SINCE_1,
    SINCE_2,
    UNKNOWN_ID,
    Check,
    CompatClient,
    check,
    new_user,
    reports,
)

# ── memories ─────────────────────────────────────────────────────────────────────────────────────


@check("add")
async def add(client: CompatClient) -> None:
    user = new_user()
    event = await client.tell("I live in Porto.", user, metadata={"trip": "x"})
    [line] = event["results"]
    assert line["data"]["memory"] == line["memory"] == "User lives in Porto"
    again = await client.tell("I moved to Lisbon.", user)
    [line] = again["results"]
    assert (line["event"], line["old_memory"]) == ("UPDATE", "User lives in Porto"), line
    same = await client.tell("I live in Lisbon.", user)
    [noop] = same["results"]
    assert (noop["event"], noop["id"]) == ("NOOP", line["id"]), noop
    assert noop["reason"]
    text = "A sentence kept as it is."
    answer = await client.call(
        "add", [{"role": "user", "content": text}], user_id=user, infer=False
    )
    [stored] = answer["results"]
    assert (stored["event"], stored["memory"]) == ("ADD", text), answer
    if not SINCE_2:
        turn = [{"role": "user", "content": "I like jazz."}]
        answer = await client.call("add", turn, user_id=user, async_mode=False)
        [line] = answer["results"]
        assert (line["event"], line["memory"]) == ("ADD", "User likes jazz"), answer
    alone = await client.refused("add", [{"role": "user", "content": "I am alone."}])
    assert reports(alone, 400, "user_id"), alone


@check("get")
async def get(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user, metadata={"a": 1})
    memory = await client.call("get", memory_id)
    assert (memory["id"], memory["user_id"], memory["memory"]) == (
        memory_id,
        user,
        "User likes tea",
    )
    assert (memory["metadata"], memory["run_id"], memory["session_id"]) == ({"a": 1}, None, None)
    assert "user_preferences" in memory["categories"], memory
    unknown = await client.refused("get", UNKNOWN_ID)
    assert reports(unknown, 404, "Memory not found!"), unknown
    if SINCE_2:
        assert "MemoryNotFoundError" in unknown, unknown


@check("get_all")
async def get_all(client: CompatClient) -> None:
    user, other = new_user(), new_user()
    await client.tell("I like tea. I live in Bern.", user)
    await client.tell("I like rum.", other)
    assert {memory["memory"] for memory in await client.all_of(user)} == {
        "User likes tea",
        "User lives in Bern",
    }
    if SINCE_1:
        page = await client.call("get_all", filters={"user_id": user}, page=1, page_size=1)
        assert (page["count"], len(page["results"]), page["previous"]) == (2, 1, None), page
        assert page["next"].startswith("http")
        tree = {"AND": [{"user_id": user}, {"categories": {"in": ["personal_details"]}}]}
        [bern] = (await client.call("get_all", filters=tree))["results"]
        assert bern["memory"] == "User lives in Bern"
    else:
        assert isinstance(await client.call("get_all", user_id=user), list)
        second = await client.call("get_all", version="v2", filters={"user_id": user})
        assert len(second) == 2
        assert len(await client.call("get_all", user_id=user, limit=1)) == 1


@check("search")
async def search(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I like jazz. I live in Bern.", user)
    if SINCE_1:
        hits = await client.call("search", " music jazz ", filters={"user_id": user})
        rows = hits["results"]
    else:
        rows = await client.call("search", "music jazz", user_id=user)
        assert isinstance(rows, list)
        wrapped = await client.call(
            "search", "jazz", version="v2", filters={"user_id": user}, output_format="v1.1"
        )
        assert wrapped["results"][0]["memory"] == rows[0]["memory"]
        bare = await client.call("search", "jazz", version="v2", filters={"user_id": user})
        assert bare[0]["memory"] == rows[0]["memory"]
    assert rows[0]["memory"] == "User likes jazz", rows
    assert 0 < rows[0]["score"] <= 1
    if SINCE_2:
        first = await client.call(
            "search", "jazz", filters={"user_id": user}, top_k=1, threshold=0.0
        )
        assert len(first["results"]) == 1
    await search_options(client, user)


async def search_options(client: CompatClient, user: str) -> None:
    owner: dict[str, Any] = {"filters": {"user_id": user}} if SINCE_1 else {"user_id": user}
    options = {"rerank": True, "keyword_search": True, "filter_memories": True}
    fields = {"fields": ["memory", "score"], "threshold": 1.0}
    hits = await client.call("search", "jazz", **owner, **options, **fields)
    [row] = hits["results"] if SINCE_1 else hits
    assert (set(row), row["memory"]) == ({"id", "memory", "score"}, "User likes jazz")
    hits = await client.call("search", "jazz", **owner, **options, fields=["memo"])
    [row] = hits["results"] if SINCE_1 else hits
    assert set(row) == {"id"}, row


@check("update")
async def update(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user)
    changed = await client.call("update", memory_id, text="Likes green tea", metadata={"b": 2})
    assert (changed["memory"], changed["metadata"]) == ("Likes green tea", {"b": 2})
    if SINCE_2:
        dated = await client.call("update", memory_id, expiration_date="2099-01-01")
        assert dated["expiration_date"] == "2099-01-01"
        cleared = await client.call("update", memory_id, expiration_date=None)
        assert cleared["expiration_date"] is None
        moved = await client.call("update", memory_id, timestamp=1_772_323_200)
        assert moved["created_at"].startswith("2026-03-01")
    fixed = await client.stored("I like rum.", user, immutable=True)
    refused = await client.refused("update", fixed, text="Likes gin")
    assert reports(refused, 400, "immutable"), refused


@check("delete")
async def delete(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user)
    options = {"delete_linked": True} if SINCE_2 else {}
    answer = await client.call("delete", memory_id, **options)
    assert answer["message"] == "Memory deleted successfully!", answer
    assert await client.all_of(user) == []


@check("delete_all")
async def delete_all(client: CompatClient) -> None:
    user, other = new_user(), new_user()
    await client.tell("I like tea.", user, metadata={"a": "x"})
    await client.tell("I live in Bern.", user)
    await client.tell("I like rum.", other)
    answer = await client.call("delete_all", user_id=user, metadata={"a": "x"})
    assert client.ended(answer["event_id"])["event_type"] == "DELETE_ALL"
    assert [memory["memory"] for memory in await client.all_of(user)] == ["User lives in Bern"]
    await client.call("delete_all", filters={"user_id": user})
    assert await client.all_of(user) == []
    assert len(await client.all_of(other)) == 1
    refused = await client.refused("delete_all")
    assert reports(refused, 400, "at least one"), refused


@check("history")
async def history(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user)
    await client.call("update", memory_id, text="Likes green tea")
    first, second = await client.call("history", memory_id)
    assert (first["event"], first["new_memory"], first["user_id"]) == (
        "ADD",
        "User likes tea",
        user,
    )
    assert first["input"] == [{"role": "user", "content": "I like tea."}], first
    assert (second["event"], second["old_memory"]) == ("UPDATE", "User likes tea")


@check("batch_update")
async def batch_update(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user)
    other_id = await client.stored("I live in Bern.", user)
    changes = [
        {"memory_id": memory_id, "text": "Likes rum"},
        {"memory_id": other_id, "metadata": {"c": 3}},
    ]
    answer = await client.call("batch_update", changes)
    assert answer == {"message": "Successfully updated 2 memories"}
    assert (await client.call("get", memory_id))["memory"] == "Likes rum"
    assert (await client.call("get", other_id))["metadata"] == {"c": 3}


@check("batch_delete")
async def batch_delete(client: CompatClient) -> None:
    user = new_user()
    memory_id = await client.stored("I like tea.", user)
    other_id = await client.stored("I live in Bern.", user)
    answer = await client.call("batch_delete", [{"memory_id": memory_id}, {"memory_id": other_id}])
    assert answer == {"message": "Successfully deleted 2 memories"}
    assert await client.all_of(user) == []


@check("feedback")
async def feedback(client: CompatClient) -> None:
    memory_id = await client.stored("I like tea.", new_user())
    if not SINCE_2:  # in these clients, telemetry fails after the server has answered
        assert "capture_client_event" in await client.refused("feedback", memory_id, "POSITIVE")
        return
    answer = await client.call("feedback", memory_id, feedback="POSITIVE", feedback_reason="ok")
    assert (answer["feedback"], answer["feedback_reason"]) == ("POSITIVE", "ok")
    assert answer["id"]
    gone = await client.call("feedback", memory_id)
    assert gone["feedback"] is None


# ── exports and summaries ────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "properties": {
        "home": {"type": "string", "description": "where a person lives"},
        "food": {"type": "array", "items": {"type": "string"}},
    },
}


@check("create_memory_export")
async def create_memory_export(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I live in Bern. I am vegetarian.", user)
    answer = await client.call("create_memory_export", SCHEMA, filters={"user_id": user})
    assert answer["id"]
    assert answer["message"]


@check("get_memory_export")
async def get_memory_export(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I live in Bern. I am vegetarian.", user)
    made = await client.call("create_memory_export", SCHEMA, filters={"user_id": user})
    by_id = await client.call("get_memory_export", memory_export_id=made["id"])
    assert set(by_id) == {"home", "food"}, by_id
    assert "Bern" in by_id["home"], by_id
    assert "vegetarian" in by_id["food"][0], by_id
    assert await client.call("get_memory_export", filters={"user_id": user}) == by_id
    unknown = await client.refused("get_memory_export", filters={"user_id": new_user()})
    assert reports(unknown, 404, "No memory export request found"), unknown


@check("get_summary")
async def get_summary(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I live in Bern.", user)
    answer = await client.call("get_summary", {"user_id": user})
    assert "Bern" in answer["summary"], answer


# ── users, agents, apps and runs ─────────────────────────────────────────────────────────────────


@check("users")
async def users(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I like tea. I live in Bern.", user)
    answer = await client.call("users")
    [mine] = [entity for entity in answer["results"] if entity["name"] == user]
    assert (mine["type"], mine["id"], mine["total_memories"]) == ("user", user, 2), mine
    assert answer["total_users"] >= 1


@check("delete_users")
async def delete_users(client: CompatClient) -> None:
    user = f"{ODD} {new_user()}" if SINCE_2 else new_user()
    await client.tell("I like tea.", user)
    answer = await client.call("delete_users", user_id=user)
    assert answer["message"] == "Entity deleted successfully."
    assert user not in {entity["name"] for entity in (await client.call("users"))["results"]}
    assert await client.all_of(user) == []


@check("reset")
async def reset(client: CompatClient) -> None:
    user = new_user()
    await client.tell("I like tea.", user, agent_id="bot")
    answer = await client.call("reset")
    assert "reset successful" in answer["message"], answer
    assert (await client.call("users"))["results"] == []


@check("chat")
async def chat(client: CompatClient) -> None:
    assert "NotImplementedError" in await client.refused("chat")


# ── profiles ─────────────────────────────────────────────────────────────────────────────────────

PROFILE_SCHEMA = {
    "type": "object",
    "properties": {"homeTown": {"type": "string", "description": "the city where they live"}},
}


async def with_profiles(client: CompatClient) -> str:
    """Enable profiles; return a user with one memory."""
    await client.call("update_profile_settings", enabled=True, schema=PROFILE_SCHEMA)
    user = str(new_user())
    await client.stored("I live in Bern.", user)
    return user


async def finished(client: CompatClient, started: dict[str, Any]) -> dict[str, Any]:
    """The job, once its events have ended."""
    job = (await client.call("get_profile_job", started["job_id"]))["job"]
    for event_id in job["event_ids"]:
        client.ended(event_id)
    return dict((await client.call("get_profile_job", started["status_url"]))["job"])


@check("get_profile_settings")
async def get_profile_settings(client: CompatClient) -> None:
    settings = await client.call("get_profile_settings")
    assert {"enabled", "capabilities", "entities"} <= settings.keys(), settings
    assert {"schema", "custom_instructions"} <= settings["entities"]["user"].keys(), settings


@check("update_profile_settings")
async def update_profile_settings(client: CompatClient) -> None:
    stored = await client.call("update_profile_settings", enabled=True, schema=PROFILE_SCHEMA)
    assert stored["entities"]["user"]["schema"] == PROFILE_SCHEMA, stored
    stored = await client.call("update_profile_settings", custom_instructions="Short.")
    assert stored["entities"]["user"]["schema"] == PROFILE_SCHEMA, stored
    assert stored == await client.call("get_profile_settings")
    await client.call("update_profile_settings", custom_instructions=None)
    wrong = {"type": "object", "properties": {"home": {"type": "string"}}}
    refused = await client.refused("update_profile_settings", schema=wrong)
    assert "ValidationError" in refused, refused
    assert "description" in refused, refused


@check("generate_profile")
async def generate_profile(client: CompatClient) -> None:
    user = await with_profiles(client)
    started = await client.call("generate_profile", user, idempotency_key=user)
    assert (started["operation"], started["entity_count_reserved"]) == ("trigger", 1), started
    again = await client.call("generate_profile", user, idempotency_key=user)
    assert (again["job_id"], again["replayed"]) == (started["job_id"], True), again
    client.ended(started["event_id"])
    unknown = await client.refused("generate_profile", new_user())
    assert reports(unknown, 404, "No such user"), unknown


@check("get_profile")
async def get_profile(client: CompatClient) -> None:
    user = await with_profiles(client)
    await finished(client, await client.call("generate_profile", user))
    profile = await client.call("get_profile", user)
    assert (profile["status"], profile["entity_id"]) == ("succeeded", user), profile
    assert "Bern" in profile["profile"]["homeTown"], profile
    assert profile["generation_count"] >= 1, profile
    assert profile["updated_at"], profile
    unknown = await client.refused("get_profile", new_user())
    assert reports(unknown, 404, "No such user"), unknown


@check("sample_profiles")
async def sample_profiles(client: CompatClient) -> None:
    await with_profiles(client)
    started = await client.call("sample_profiles", limit=2)
    assert len(started["entity_ids"]) == started["sampled"] <= 2, started
    job = await finished(client, started)
    assert (job["operation"], job["status"]) == ("sample", "succeeded"), job


@check("get_profile_job")
async def get_profile_job(client: CompatClient) -> None:
    user = await with_profiles(client)
    job = await finished(client, await client.call("generate_profile", user))
    assert (job["total"], job["completed"], job["succeeded"], job["failed"]) == (1, 1, 1, 0), job
    assert job["enumeration_complete"], job
    unknown = await client.refused("get_profile_job", UNKNOWN_ID)
    assert reports(unknown, 404, "not found"), unknown


# ── projects, members, webhooks ──────────────────────────────────────────────────────────────────


@check("project.get")
async def project_get(client: CompatClient) -> None:
    project = await client.call("project.get")
    assert project["project_id"] == client.real.project_id, project
    assert "custom_instructions" in project


@check("project.update")
async def project_update(client: CompatClient) -> None:
    await client.call("project.update", custom_instructions="Keep it short.")
    assert (await client.call("project.get"))["custom_instructions"] == "Keep it short."


@check("project.create")
async def project_create(client: CompatClient) -> None:
    assert (await client.call("project.create", name="another"))["project_id"]


@check("project.delete")
async def project_delete(client: CompatClient) -> None:
    """Check the error only: the other checks need the project."""
    await project_get(client)
    lost = client.real.project
    project_id, lost._project_id = getattr(lost, "_project_id", None), UNKNOWN_ID
    lost.config.project_id, configured_id = UNKNOWN_ID, lost.config.project_id
    try:
        refused = await client.refused("project.delete")
    finally:
        lost.config.project_id, lost._project_id = configured_id, project_id
    assert reports(refused, 404, "not found"), refused


@check("project.get_members")
async def get_members(client: CompatClient) -> None:
    assert "members" in await client.call("project.get_members")


@check("project.add_member")
async def add_member(client: CompatClient) -> None:
    email = f"{new_user()}@example.org"
    await client.call("project.add_member", email, "READER")
    members = (await client.call("project.get_members"))["members"]
    assert email in {member["email"] for member in members}


@check("project.update_member")
async def update_member(client: CompatClient) -> None:
    email = f"{new_user()}@example.org"
    await client.call("project.add_member", email, "READER")
    await client.call("project.update_member", email, "OWNER")
    members = (await client.call("project.get_members"))["members"]
    assert {member["role"] for member in members if member["email"] == email} == {"OWNER"}


@check("project.remove_member")
async def remove_member(client: CompatClient) -> None:
    email = f"{new_user()}@example.org"
    await client.call("project.add_member", email, "READER")
    await client.call("project.remove_member", email)
    members = (await client.call("project.get_members"))["members"]
    assert email not in {member["email"] for member in members}


@check("get_project")
async def get_project(client: CompatClient) -> None:
    assert (await client.call("get_project"))["project_id"] == client.real.project_id


@check("update_project")
async def update_project(client: CompatClient) -> None:
    await client.call("update_project", custom_instructions="Keep it long.")
    assert (await client.call("get_project"))["custom_instructions"] == "Keep it long."


async def new_webhook(client: CompatClient) -> dict[str, Any]:
    made = await client.call(
        "create_webhook",
        url="https://example.org/hook",
        name="mine",
        project_id=client.real.project_id,
        event_types=["memory_add"],
    )
    assert isinstance(made["webhook_id"], str), made
    return dict(made)


async def webhooks(client: CompatClient) -> dict[str, dict[str, Any]]:
    listed = await client.call("get_webhooks", project_id=client.real.project_id)
    return {webhook["webhook_id"]: webhook for webhook in listed}


@check("create_webhook")
async def create_webhook(client: CompatClient) -> None:
    assert (await new_webhook(client))["event_types"] == ["memory_add"]


@check("get_webhooks")
async def get_webhooks(client: CompatClient) -> None:
    assert (await new_webhook(client))["webhook_id"] in await webhooks(client)


@check("update_webhook")
async def update_webhook(client: CompatClient) -> None:
    made = (await new_webhook(client))["webhook_id"]
    await client.call("update_webhook", made, name="renamed")
    assert (await webhooks(client))[made]["name"] == "renamed"


@check("delete_webhook")
async def delete_webhook(client: CompatClient) -> None:
    made = (await new_webhook(client))["webhook_id"]
    await client.call("delete_webhook", made)
    assert made not in await webhooks(client)


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def public(of: object) -> list[str]:
    return [name for name, _ in inspect.getmembers(of, callable) if not name.startswith("_")]


def methods(real: Any) -> list[str]:
    """Names of all public methods of the client."""
    inner = {"project", "client", "async_client"}
    return [name for name in public(real) if name not in inner] + [
        f"project.{name}" for name in public(real.project) if name != "config"
    ]


async def main(kind: str) -> None:
    client = CompatClient(kind)
    print(json.dumps({"method": "__init__", "works": True, "said": ""}))
    for name in sorted(methods(client.real), key=lambda name: (name == "reset", name)):
        if name not in CHECKS:
            verdict = "nothing here asks it"
        else:
            verdict = await outcome(CHECKS[name], client)
        print(json.dumps({"method": name, "works": not verdict, "said": verdict}), flush=True)


async def outcome(check: Check, client: CompatClient) -> str:
    """Error of a check; empty if the client behaves as its users expect."""
    try:
        await check(client)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({line.name}:{line.lineno})"
    return ""


asyncio.run(main(sys.argv[1]))
