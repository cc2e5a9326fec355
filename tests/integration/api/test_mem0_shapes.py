"""Requests and responses in the shapes of older Mem0 clients and of Mem0's documented API."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.support.api_service import ADD, LIVES, MAYA, Service, error_of

MEMORIES = "/v1/memories/"


async def texts(service: Service, **query: Any) -> set[str]:
    answer = await service.client.get(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    return {row["memory"] for row in answer.json()}


async def three(service: Service) -> None:
    await service.add("I like tea.", metadata={"trip": "lisbon", "n": 1})
    await service.add("I like rum.", metadata={"trip": "oslo", "n": "1"})
    await service.add("I live in Bern.", metadata={"trip": "lisbon", "n": 2})


async def test_a_list_is_narrowed_by_metadata_in_the_deep_object_style(service: Service) -> None:
    await three(service)
    lisbon = await texts(service, **MAYA, **{"metadata[trip]": "lisbon"})
    assert lisbon == {"User likes tea", "User lives in Bern"}
    both = {"metadata[trip]": "lisbon", "metadata[n]": "2"}
    assert await texts(service, **MAYA, **both) == {"User lives in Bern"}
    either_type = await texts(service, **MAYA, **{"metadata[n]": "1"})
    assert either_type == {"User likes tea", "User likes rum"}


async def test_a_delete_is_narrowed_by_metadata_in_the_deep_object_style(service: Service) -> None:
    await three(service)
    query = MAYA | {"metadata[trip]": "lisbon"}
    answer = await service.client.delete(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    assert await texts(service, **MAYA) == {"User likes rum"}


@pytest.mark.parametrize("query", [{}, {"limit": "5"}, {"metadata[trip]": "lisbon"}])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_list_and_no_delete_without_an_id(
    method: str, query: dict[str, str], service: Service
) -> None:
    await three(service)
    answer = await service.client.request(method, MEMORIES, params=query)
    assert answer.status_code == 400, answer.text
    assert len(await texts(service, **MAYA)) == 3


async def test_a_bad_request_carries_its_reason_as_details_too(service: Service) -> None:
    for path, body in ((ADD, {"messages": "x"}), (MEMORIES, LIVES | {"user_id": "*"})):
        answer = await service.client.post(path, json=body)
        assert answer.status_code == 400
        assert answer.json()["details"] == {"message": answer.json()["error"]}
    missing = await service.client.get(f"/v1/event/{'0' * 32}/")
    assert (missing.status_code, "details" in missing.json()) == (404, False)


CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
WITH_TOOLS = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "I live in Berlin. Weather?"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "I live in Oslo. Sunny."},
    {"role": "assistant", "content": "Sunny."},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
]


async def test_an_openai_history_with_a_tool_call_and_an_image_is_accepted_whole(
    service: Service,
) -> None:
    answer = await service.client.post(ADD, json={"messages": WITH_TOOLS} | MAYA)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    event = await service.event(answer.json()["event_id"])
    assert event["status"] == "SUCCEEDED"
    assert [row["memory"] for row in await service.listed()] == ["User lives in Berlin"]
    named = [(part["message"], part["part"], part["type"]) for part in event["omitted"]]
    assert named == [(2, None, "tool_calls"), (5, 0, "image_url")]
    assert all(part["reason"] for part in event["omitted"])
    assert [message["role"] for message in event["payload"]["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_a_tools_answer_is_no_turn_that_a_search_finds(service: Service) -> None:
    await service.client.post(ADD, json={"messages": WITH_TOOLS} | MAYA)
    await service.engine.drain()
    hits = await service.search("live", include=["turns"], threshold=0, top_k=50)
    assert hits
    assert {row["attributed_to"] for row in hits} == {"user"}


async def test_a_turn_without_any_text_ends_with_a_note(service: Service) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    body = {"messages": [{"role": "user", "content": [image]}]} | MAYA
    answer = await service.client.post(ADD, json=body)
    await service.engine.drain()
    event = await service.event(answer.json()["event_id"])
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert event["note"]
    assert [part["type"] for part in event["omitted"]] == ["image_url"]


async def test_messages_stored_as_they_are_keep_a_tools_role(staffed: Service) -> None:
    answer = await staffed.client.post(ADD, json={"messages": WITH_TOOLS, "infer": False} | MAYA)
    assert [part["type"] for part in answer.json()["omitted"]] == ["tool_calls", "image_url"]
    authors = {row["memory"]: row["attributed_to"] for row in await staffed.listed()}
    assert authors == {
        "I live in Berlin. Weather?": "user",
        "I live in Oslo. Sunny.": "tool",
        "Sunny.": "assistant",
    }


async def test_each_deduced_memory_is_a_memory_of_its_own(staffed: Service) -> None:
    body = {
        "messages": [{"role": "user", "content": "Likes tea\nLives in Bern"}],
        "deduced_memories": ["Likes tea", " ", "Lives in Bern"],
        "infer": False,
    }
    answer = await staffed.client.post("/v1/memories/", json=body | MAYA)
    assert [line["event"] for line in answer.json()] == ["ADD", "ADD"]
    assert {row["memory"] for row in await staffed.listed()} == {"Likes tea", "Lives in Bern"}


async def test_the_same_key_with_another_image_is_another_add(service: Service) -> None:
    def with_image(count: int) -> dict[str, Any]:
        images = [{"type": "image_url", "image_url": {"url": "https://x"}}] * count
        parts = [{"type": "text", "text": "Look!"}, *images]
        return {"messages": [{"role": "user", "content": parts}]} | MAYA

    key = {"Idempotency-Key": "once"}
    first = await service.client.post(ADD, json=with_image(1), headers=key)
    again = await service.client.post(ADD, json=with_image(1), headers=key)
    other = await service.client.post(ADD, json=with_image(2), headers=key)
    assert first.json()["event_id"] == again.json()["event_id"]
    assert other.status_code == 409


# ── bodies that the cloud accepts ────────────────────────────────────────────────────────────────


async def test_a_memory_may_be_given_the_text_of_another_one(service: Service) -> None:
    await service.add("I like tea.")
    await service.add("I live in Bern.")
    tea, bern = sorted(await service.listed(), key=lambda row: "Bern" in row["memory"])
    answer = await service.client.put(f"{MEMORIES}{bern['id']}/", json={"text": tea["memory"]})
    assert (answer.status_code, answer.json()["memory"]) == (200, tea["memory"])
    assert len(await service.listed()) == 2
    # The text is already stored, twice: an add of it is a NOOP.
    [line] = (await service.event(await service.add("I like tea.")))["results"]
    assert line["event"] == "NOOP"
    # The undo of a delete of both restores both.
    gone = await service.client.delete(MEMORIES, params=MAYA)
    undone = await service.client.post(f"/v1/event/{gone.json()['event_id']}/undo/")
    assert undone.status_code == 200, undone.text
    assert {row["id"] for row in await service.listed()} == {tea["id"], bern["id"]}


async def test_a_batch_may_give_two_memories_one_text(service: Service) -> None:
    await service.add("I like tea.")
    await service.add("I live in Bern.")
    changes = [{"memory_id": row["id"], "text": "Same."} for row in await service.listed()]
    answer = await service.client.put("/v1/batch/", json={"memories": changes})
    assert answer.status_code == 200, answer.text
    assert [row["memory"] for row in await service.listed()] == ["Same.", "Same."]


async def test_an_empty_batch_changes_nothing(service: Service) -> None:
    for method, done in (("PUT", "updated"), ("DELETE", "deleted")):
        answer = await service.client.request(method, "/v1/batch/", json={"memories": []})
        assert answer.json() == {"message": f"Successfully {done} 0 memories"}


async def test_a_blank_expiration_date_is_none(service: Service) -> None:
    await service.add("I like tea.", expiration_date="")
    [stored] = await service.listed()
    assert stored["expiration_date"] is None
    path = f"{MEMORIES}{stored['id']}/"
    await service.client.put(path, json={"expiration_date": "2099-01-01"})
    cleared = await service.client.put(path, json={"expiration_date": ""})
    assert cleared.json()["expiration_date"] is None


async def test_the_address_of_a_ping_is_valid_and_names_no_person(service: Service) -> None:
    body = (await service.client.get("/v1/ping/")).json()
    assert body["user_email"] == "local@memlane.invalid"


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"fields": ["home", "food"]}, {"home", "food"}),
        ({"home": "string", "food": ["string"]}, {"home", "food"}),
        ({"home": "the city she lives in", "food": {"type": "array"}}, {"home", "food"}),
    ],
    ids=["fields", "types", "descriptions"],
)
async def test_an_export_may_name_only_the_fields(
    schema: dict[str, Any], names: set[str], staffed: Service
) -> None:
    body = {"schema": schema, "filters": MAYA}
    made = await staffed.client.post("/v1/exports/", json=body)
    assert made.status_code == 201, made.text
    query = {"memory_export_id": made.json()["id"]}
    filled = await staffed.client.post("/v1/exports/get/", json=query)
    assert set(filled.json()) == names


async def test_an_export_is_not_read_without_an_id_or_filters(service: Service) -> None:
    assert (await service.client.post("/v1/exports/get/", json={})).status_code == 400


async def test_entries_of_a_history_have_uuids_and_texts(service: Service) -> None:
    await service.add("I like tea.")
    [stored] = await service.listed()
    await service.client.delete(f"{MEMORIES}{stored['id']}/")
    path = f"{MEMORIES}{stored['id']}/history/"
    entries = (await service.client.get(path)).json()
    assert len({UUID(entry["id"]) for entry in entries}) == 2
    assert [entry["new_memory"] for entry in entries] == ["User likes tea", ""]
    assert (await service.client.get(path)).json() == entries


# ── shapes that the Mem0 Platform documents ──────────────────────────────────────────────────────


async def test_a_registered_entity_is_deleted_by_the_number_it_was_given(service: Service) -> None:
    body = {"user_id": "ada", "name": "Ada"}
    made = (await service.client.post("/v1/users/", json=body)).json()
    assert isinstance(made["id"], int)
    assert isinstance(made["project"], int)
    assert (made["user_id"], made["name"], made["metadata"]) == ("ada", "Ada", {})
    assert (made["is_deleted"], made["graph_entities"]) == (False, None)
    await service.client.delete(f"/v1/entities/user/{made['id']}/")
    assert (await service.client.get("/v1/entities/")).json()["count"] == 0


async def test_a_user_called_by_a_number_is_deleted_by_name(service: Service) -> None:
    await service.add("I like tea.", user_id="123")
    await service.client.delete("/v1/entities/user/123/")
    assert await service.listed(user_id="123") == []


async def test_the_memories_of_an_entity_say_what_they_came_from(service: Service) -> None:
    await service.add("I like tea.")
    path = f"{MEMORIES}user/maya/"
    [row] = (await service.client.get(path)).json()["results"]
    assert row["input"] == [{"role": "user", "content": "I like tea."}]
    assert row["is_updated"] is False
    await service.client.put(f"{MEMORIES}{row['id']}/", json={"text": "Likes rum"})
    [row] = (await service.client.get(path)).json()["results"]
    assert row["is_updated"] is True


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_webhook_id_that_is_no_uuid_is_not_found(method: str, service: Service) -> None:
    answer = await service.client.request(method, "/api/v1/webhooks/7/", json={"name": "x"})
    assert (answer.status_code, answer.json()["error"]) == (404, "Webhook not found")


# ── options and keys that Memlane does not have ──────────────────────────────────────────────────


@pytest.mark.parametrize("option", ["dry_run", "as_of"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/batch/", {"memories": []}),
        ("POST", "/v1/events/replay/", MAYA),
        ("POST", "/v1/erasures/", MAYA),
    ],
)
async def test_an_option_that_a_route_does_not_have_is_refused(
    method: str, path: str, body: dict[str, Any], option: str, service: Service
) -> None:
    refused = await service.client.request(method, path, json=body | {option: "2026-01-01"})
    assert (refused.status_code, option in refused.json()["error"]) == (400, True), refused.text
    answer = await service.client.request(method, path, json=body, params={option: "true"})
    assert (answer.status_code, option in answer.json()["error"]) == (400, True), answer.text
    assert (await service.client.get("/v1/events/")).json()["count"] == 0
    off = await service.client.request(method, path, json=body | {option: None})
    assert off.status_code == 200, off.text


@pytest.mark.parametrize("option", ["dry_run", "as_of"])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/memories/{id}/",
        "/memories/{id}/",
        "/v1/entities/user/maya/",
        "/v2/entities/user/maya/",
        "/entities/user/maya/",
    ],
)
async def test_a_delete_without_a_dry_run_refuses_one_and_deletes_nothing(
    path: str, option: str, service: Service
) -> None:
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    url = path.format(id=memory["id"])
    refused = await service.client.delete(url, params={option: "2026-01-01"})
    assert (refused.status_code, option in error_of(refused)) == (400, True), refused.text
    assert await service.listed() == [memory]
    answer = await service.client.delete(url, params={option: "", "source": "cli"})
    assert answer.status_code == 200, answer.text
    assert await service.listed() == []


async def test_a_key_that_mem0_routes_ignore_is_named_in_a_header(service: Service) -> None:
    body = LIVES | {"output_shape": True, "source": "cli", "org_id": "", "bad\r\nname": 1}
    answer = await service.client.post(ADD, json=body)
    assert (answer.status_code, answer.headers["X-Memlane-Ignored"]) == (200, "output_shape")
    answer = await service.client.post(ADD, json=LIVES)
    assert "X-Memlane-Ignored" not in answer.headers
    assert answer.json().keys() == {"event_id", "status"}


async def test_an_ignored_key_stands_in_the_answer_and_on_the_receipt(service: Service) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"infr": False}, params={"tresh": 1})
    assert answer.json()["ignored"] == ["infr", "tresh"]
    receipt = (await service.client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    assert [part["type"] for part in receipt["omitted"]] == ["infr", "tresh"]
    older = await service.client.post(MEMORIES, json=LIVES | {"infr": False})
    assert older.json()[0]["ignored"] == ["infr"]


async def test_an_option_without_effect_is_named_as_ignored(service: Service) -> None:
    body = LIVES | {"async_mode": False}
    answer = await service.client.post(ADD, json=body)
    assert (answer.json()["status"], answer.json()["ignored"]) == ("PENDING", ["async_mode"])
    assert answer.headers["X-Memlane-Ignored"] == "async_mode"
    for other in (LIVES | {"async_mode": True}, body | {"infer": False}):
        assert "ignored" not in (await service.client.post(ADD, json=other)).json()


async def test_an_expiration_in_the_past_is_warned_of(service: Service) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"expiration_date": "2020-01-01"})
    assert "2020-01-01 is in the past" in answer.json()["warning"]
    receipt = (await service.client.get(f"/v1/event/{answer.json()['event_id']}/")).json()
    assert "2020-01-01 is in the past" in receipt["omitted"][0]["reason"]


@pytest.mark.parametrize("name", ["user", "userid", "userId", "USER-ID"])
async def test_a_misspelt_id_is_refused_with_the_right_one(service: Service, name: str) -> None:
    hint = f"ou wrote {name}; did you mean user_id?"
    answer = await service.client.get("/v1/events/", params={name: "maya"})
    assert (answer.status_code, hint in answer.json()["error"]) == (400, True), answer.text
    body = {"messages": LIVES["messages"], name: "maya"}
    answer = await service.client.post(ADD, json=body)
    assert (answer.status_code, hint in answer.json()["error"]) == (400, True), answer.text
    both = {"user_id": "maya", name: "x"}
    assert (await service.client.get("/v1/events/", params=both)).status_code == 200


async def test_a_parameter_with_one_value_is_not_repeated(service: Service) -> None:
    await service.add("I like tea.")
    for query in ("user_id=maya&user_id=tom", "user_id=maya&limit=1&limit=2"):
        refused = await service.client.get(f"{MEMORIES}?{query}")
        assert refused.status_code == 400
        assert "has two values" in refused.json()["error"]
    for query in ("user_id=maya&user_id=maya", "user_id=maya&fields=id&fields=memory"):
        assert len((await service.client.get(f"{MEMORIES}?{query}")).json()) == 1


async def test_an_unknown_query_parameter_is_named_in_a_header(service: Service) -> None:
    sent = {"user_id": "maya", "colour": "red", "source": "x", "metadata[trip]": "x"}
    answer = await service.client.get(MEMORIES, params=sent)
    assert (answer.status_code, answer.headers["X-Memlane-Ignored"]) == (200, "colour")


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        ("GET", "/", "This is the API of Memlane. All routes: /docs."),
        ("GET", "/stats", "the nearest is GET /v1/stats/."),
        ("POST", "/v1/search/", "the nearest is POST /v3/memories/search/."),
        ("GET", "/nothing/of/this", "There is no route /nothing/of/this. All routes"),
        ("GET", ADD, "/v3/memories/add/ does not take GET; use POST. All routes: /docs."),
    ],
)
async def test_a_wrong_path_or_method_names_the_right_one(
    service: Service, method: str, path: str, hint: str
) -> None:
    answer = await service.client.request(method, path)
    assert answer.status_code in (404, 405)
    assert hint in answer.json()["error"]


async def test_an_unknown_key_on_our_own_routes_is_refused(service: Service) -> None:
    answer = await service.client.post("/v1/events/replay/", json=MAYA | {"limit": 5})
    assert answer.status_code == 400
    assert "limit is not known here; use " in answer.json()["error"]
