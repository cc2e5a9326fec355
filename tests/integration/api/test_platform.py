"""Routes and options of the Mem0 Platform: versions, categories, exports, owners, feeds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import text as sql

from api.routers import ROUTERS
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.integration.events.test_cancel import is_blocked
from tests.support.api_service import (
    ADD,
    LIVES,
    MAYA,
    Service,
    error_of,
    serving,
    stranger,
)
from tests.support.engine import Engine
from tests.support.stack import wait_until

MEMORIES = "/v1/memories/"


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


@pytest.fixture
async def staffed(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger, workers=True) as built:
        yield built


# ── versions of lists and searches ───────────────────────────────────────────────────────────────


async def test_older_lists_are_bare_until_both_page_and_size_are_asked_for(
    service: Service,
) -> None:
    await service.add("I like tea. I live in Bern.")
    query = {"filters": MAYA}
    bare = await service.client.post("/v2/memories/", json=query)
    assert [type(row) for row in bare.json()] == [dict, dict]
    assert isinstance((await service.client.post("/v2/memories/?page=1", json=query)).json(), list)
    page = (await service.client.post("/v2/memories/?page=1&page_size=1", json=query)).json()
    assert (page["count"], len(page["results"])) == (2, 1)
    assert (await service.client.get(MEMORIES, params=MAYA)).json() == bare.json()
    assert len((await service.client.get(MEMORIES, params=MAYA | {"limit": 1})).json()) == 1
    page = (await service.client.get(f"{MEMORIES}?user_id=maya&page=2&page_size=1")).json()
    assert (page["count"], page["next"]) == (2, None)
    too_many = await service.client.get(MEMORIES, params=MAYA | {"limit": 201})
    assert (too_many.status_code, error_of(too_many)) == (400, "limit must be <= 200")


async def test_older_searches_are_bare_and_keep_only_what_is_near(service: Service) -> None:
    await service.add("I like jazz.")
    query = {"query": "jazz", "threshold": 0}
    for body, path in (
        (query | {"filters": MAYA}, "/v2/memories/search/"),
        (query | MAYA | {"limit": 5}, "/v1/memories/search/"),
    ):
        [hit] = (await service.client.post(path, json=body)).json()
        assert hit["memory"] == "User likes jazz"
        wrapped = await service.client.post(path, json=body | {"output_format": "v1.1"})
        assert [row["id"] for row in wrapped.json()["results"]] == [hit["id"]]


async def test_a_query_string_is_refused_as_a_body_would_be(service: Service) -> None:
    for bad in ({"metadata": "0"}, {"metadata": "[1]"}):
        answer = await service.client.get("/v1/memories/", params=bad | {"user_id": "maya"})
        assert answer.status_code == 400, answer.text
        assert "metadata" in answer.json()["error"]


async def test_lists_are_narrowed_by_what_stands_beside_the_filters(service: Service) -> None:
    await service.add("I like tea.", timestamp="2026-03-01T10:00:00Z", metadata={"a": 1})
    await service.add("I live in Bern.", timestamp="2026-03-02T10:00:00Z")

    async def found(**body: Any) -> list[str]:
        answer = await service.client.post("/v3/memories/", json={"filters": MAYA} | body)
        assert answer.status_code == 200, answer.text
        return [row["memory"] for row in answer.json()["results"]]

    tea, bern = ["User likes tea"], ["User lives in Bern"]
    assert await found(categories=["personal_details"]) == bern
    assert await found(categories={"contains": "prefer"}) == tea
    assert await found(metadata={"a": 1}) == tea
    assert await found(keywords="BERN") == bern
    assert await found(end_date="2026-03-01") == tea
    assert await found(start_date="2026-03-02") == bern
    answer = await service.client.post(
        "/v3/memories/", json={"filters": MAYA, "fields": ["memory"]}
    )
    assert {tuple(sorted(row)) for row in answer.json()["results"]} == {("id", "memory")}


async def test_the_memories_of_one_entity_have_a_path_of_their_own(service: Service) -> None:
    await service.add("I like tea.", user_id="a/b c")
    page = (await service.client.get(f"{MEMORIES}user/a%2Fb%20c/")).json()
    assert (page["count"], page["results"][0]["user_id"]) == (1, "a/b c")
    wrong = await service.client.get(f"{MEMORIES}planet/mars/")
    assert (wrong.status_code, error_of(wrong)) == (400, "Invalid entity type")


# ── fields of a memory ───────────────────────────────────────────────────────────────────────────


async def test_a_memory_is_shown_with_all_its_keys(service: Service) -> None:
    await service.add("I like tea.", run_id="r1", timestamp="2026-03-01T10:20:00Z")
    [stored] = await service.listed()
    assert (stored["run_id"], stored["session_id"]) == ("r1", "r1")
    assert stored["metadata"] is None
    assert stored["categories"] == ["food", "user_preferences"]
    assert (stored["lifecycle_state"], stored["replaced_by"]) == ("active", None)
    parts = stored["structured_attributes"]
    assert (parts["year"], parts["hour"], parts["day_of_week"]) == (2026, 10, "sunday")
    assert (parts["is_weekend"], parts["quarter"], parts["week_of_year"]) == (True, 1, 9)


async def test_a_call_brings_categories_of_its_own(service: Service) -> None:
    own = [{"drinks": "tea, coffee and rum"}, {"homes": "where a person lives"}]
    await service.add("I like tea. I live in Bern. I work at Siemens.", custom_categories=own)
    categories = {row["memory"]: row["categories"] for row in await service.listed()}
    assert categories == {
        "User likes tea": ["drinks"],
        "User lives in Bern": ["homes"],
        "User works at Siemens": [],
    }
    answer = await service.client.post(ADD, json=LIVES | {"custom_categories": ["drinks"]})
    assert answer.status_code == 400
    assert 'Expected a dictionary of items but got type "str"' in error_of(answer)


async def test_a_repeated_category_of_a_query_string_may_have_a_comma(service: Service) -> None:
    own = [{"Tea, coffee": "drinks"}, {"homes": "where a person lives"}, {"Tea": "leaves"}]
    await service.add("I like tea. I live in Bern.", custom_categories=own)
    async with service.engine.ledger.engine.begin() as connection:
        named = "UPDATE memories SET categories = ARRAY['Tea, coffee'] WHERE text LIKE '%tea'"
        await connection.execute(sql(named))

    async def names(query: str) -> list[str]:
        answer = await service.client.get(f"/v1/memories/?user_id=maya&{query}")
        assert answer.status_code == 200, answer.text
        return sorted(row["memory"] for row in answer.json())

    tea, both = ["User likes tea"], ["User likes tea", "User lives in Bern"]
    assert await names("categories=Tea,%20coffee&categories=other") == tea
    assert await names("categories=Tea,%20coffee&categories=") == tea
    assert await names("categories=Tea,%20coffee&categories=homes") == both
    assert await names("categories=coffee,homes") == ["User lives in Bern"]


class Listening(RulesModel):
    """Rules that record the instructions of the last request."""

    heard: Instructions

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.heard = request.instructions
        return await super().extract(request)


async def test_the_project_speaks_where_the_call_is_silent(service: Service) -> None:
    model = Listening()
    service.engine.with_model(model)
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            sql(
                "UPDATE projects SET custom_instructions = 'Be brief.', includes = 'food', "
                "excludes = 'work', agent_custom_instructions = 'Its promises.', "
                """custom_categories = '{"drinks": "tea"}' WHERE id = :id"""
            ),
            {"id": service.engine.project.id},
        )
    await service.add("I like tea. I work at Siemens.")
    assert model.heard == Instructions(
        "Be brief.", "food", "work", "Its promises.", {"drinks": "tea"}
    )
    [stored] = await service.listed()
    assert (stored["memory"], stored["categories"]) == ("User likes tea", ["drinks"])
    await service.add("I like rum.", excludes="", custom_instructions="Be long.")
    assert (model.heard.custom, model.heard.excludes, model.heard.includes) == (
        "Be long.",
        "",
        "food",
    )


async def test_a_receipt_names_what_was_known_already(service: Service) -> None:
    await service.add("I like tea.")
    [stored] = await service.listed()
    [line] = (await service.event(await service.add("I like tea.")))["results"]
    assert (line["event"], line["id"], line["old_memory"]) == (
        "NOOP",
        stored["id"],
        "User likes tea",
    )
    assert line["reason"]


# ── exports and summaries ────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "properties": {
        "home": {"type": "string", "description": "where a person lives"},
        "likes": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Likes"}]},
        "vegetarian": {"type": "boolean"},
    },
    "$defs": {
        "Likes": {"type": "object", "properties": {"food": {"type": "array", "items": {}}}},
    },
}


async def test_an_export_fills_the_schema_behind_all_that_was_said_before(
    service: Service,
) -> None:
    await service.client.post(ADD, json=LIVES | {"messages": "I live in Bern. I like pizza."})
    made = await service.client.post("/v1/exports/", json={"schema": SCHEMA, "filters": MAYA})
    assert made.status_code == 201, made.text
    await service.engine.drain()
    by_id = {"memory_export_id": made.json()["id"]}
    answer = await service.client.post("/v1/exports/get/", json=by_id)
    assert answer.json() == {
        "home": "User lives in Bern.",
        "likes": {"food": ["User likes pizza."]},
        "vegetarian": None,
    }
    for same in (MAYA, {"filters": MAYA}):
        assert (await service.client.post("/v1/exports/get/", json=same)).json() == answer.json()
    other = await service.client.post("/v1/exports/get/", json={"user_id": "jon"})
    assert (other.status_code, error_of(other)) == (404, "No memory export request found")
    event = await service.event(made.json()["id"])
    assert (event["event_type"], event["note"]) == ("EXPORT", "Answered from 2 of 2 memories.")


@pytest.mark.parametrize("limits", [{"start_date": "2026-01-01"}, {"end_date": "2030-01-01"}])
async def test_an_export_of_a_period_is_read_by_the_same_period(
    staffed: Service, limits: dict[str, str]
) -> None:
    same = {"filters": MAYA} | limits
    made = await staffed.client.post("/v1/exports/", json={"schema": SCHEMA} | same)
    assert made.status_code == 201, made.text
    answer = await staffed.client.post("/v1/exports/get/", json=same)
    assert (answer.status_code, set(answer.json())) == (200, set(SCHEMA["properties"]))
    other = await staffed.client.post("/v1/exports/get/", json=same | {"start_date": "2025-01-01"})
    assert other.status_code == 404


async def test_a_summary_waits_for_its_answer(staffed: Service) -> None:
    await staffed.add("I live in Bern.")
    answer = await staffed.client.post("/v1/summary/", json={"filters": MAYA})
    assert answer.json() == {"summary": "User lives in Bern."}


class Silent(RulesModel):
    async def distil(self, *_: object) -> Any:
        raise MalformedAnswer("no JSON")


async def test_a_question_that_fails_says_so(staffed: Service) -> None:
    staffed.engine.with_model(Silent())
    answer = await staffed.client.post("/v1/summary/", json={"filters": MAYA})
    assert (answer.status_code, "LLM_BAD_OUTPUT" in error_of(answer)) == (409, True)


@pytest.mark.parametrize(
    ("schema", "holds"),
    [
        ([1], "schema"),
        ("{", "must be JSON"),
        ({"type": "array"}, "of type object"),
        ({"type": "object", "properties": [1]}, "of type object"),
        ({"properties": {"a": {"$ref": "#/none"}}}, "refers to a part"),
        ({"properties": {"a": {"$ref": "#"}}}, "nests deeper"),
    ],
)
async def test_a_schema_that_cannot_be_filled_is_refused(
    service: Service, schema: object, holds: str
) -> None:
    body = {"schema": schema, "filters": MAYA}
    answer = await service.client.post("/v1/exports/", json=body)
    assert (answer.status_code, holds in error_of(answer)) == (400, True), answer.text


# ── owners, feedback, feeds ──────────────────────────────────────────────────────────────────────


async def test_entities_are_counted_by_kind(service: Service) -> None:
    await service.add("I like tea. I live in Bern.", agent_id="bot")
    await service.add("I like rum.", user_id="jon", run_id="r1")
    answer = await service.client.post(
        "/v1/users/", json={"user_id": "ada", "name": "Ada", "metadata": {"a": 1}}
    )
    assert (answer.status_code, answer.json()["display_name"]) == (201, "Ada")
    census = (await service.client.get("/v1/entities/")).json()
    counted = {(row["type"], row["id"]): row["total_memories"] for row in census["results"]}
    assert counted == {
        ("user", "maya"): 2,
        ("agent", "bot"): 2,
        ("user", "jon"): 1,
        ("run", "r1"): 1,
        ("user", "ada"): 0,
    }
    assert (census["count"], census["total_users"], census["total_apps"]) == (5, 3, 0)
    [ada] = (await service.client.get("/v2/entities/user/ada/")).json()
    assert (ada["name"], ada["metadata"]) == ("ada", {"a": 1})
    filters = (await service.client.get("/v1/entities/filters/")).json()
    assert "food" in filters["categories"]
    assert set(filters["users"]) == {"maya", "jon", "ada"}
    assert [parameter["name"] for parameter in filters["parameters"]] == [
        "user_id", "agent_id", "app_id", "run_id",
    ]  # fmt: skip
    nameless = await service.client.post("/v1/agents/", json={"user_id": "ada"})
    assert (nameless.status_code, "agent_id is missing" in error_of(nameless)) == (400, True)


async def test_no_owner_may_have_the_name_that_means_all_owners(service: Service) -> None:
    for path, body in ((ADD, LIVES | {"user_id": "*"}), ("/v1/users/", {"user_id": "*"})):
        answer = await service.client.post(path, json=body)
        assert (answer.status_code, "any id" in error_of(answer)) == (400, True), answer.text


async def test_feedback_is_kept_until_it_is_taken_back(service: Service) -> None:
    await service.add("I like tea.")
    [stored] = await service.listed()
    body = {"memory_id": stored["id"], "feedback": "NEGATIVE", "feedback_reason": "wrong"}
    for opinion in ("NEGATIVE", "POSITIVE", None):
        answer = await service.client.post("/v1/feedback/", json=body | {"feedback": opinion})
        assert answer.json() == {
            "id": stored["id"],
            "feedback": opinion,
            "feedback_reason": "wrong",
        }
        async with service.engine.ledger.engine.connect() as connection:
            latest = await connection.scalar(sql("SELECT max(feedback) FROM feedback"))
        assert latest == opinion
    for bad, status in (({"feedback": "MEH"}, 400), ({"memory_id": str(uuid4())}, 404)):
        answer = await service.client.post("/v1/feedback/", json=body | bad)
        assert answer.status_code == status, answer.text


async def test_feedback_on_a_memory_that_is_just_erased_is_answered_with_404(
    service: Service,
) -> None:
    await service.add("I like tea.")
    [stored] = await service.listed()
    body = {"memory_id": stored["id"], "feedback": "NEGATIVE"}
    async with service.engine.ledger.engine.begin() as erasing:
        await erasing.execute(sql("DELETE FROM memories"))
        giving = asyncio.create_task(service.client.post("/v1/feedback/", json=body))
        await wait_until(lambda: is_blocked(service.engine), within_s=10, what="the feedback")
    answer = await giving
    assert answer.status_code == 404, answer.text


async def test_the_feed_tells_every_change_with_the_words_it_came_from(service: Service) -> None:
    await service.add("I like tea.")
    [stored] = await service.listed()
    await service.client.put(f"{MEMORIES}{stored['id']}/", json={"text": "Likes rum"})
    page = (await service.client.get(f"{MEMORIES}events/?page_size=1")).json()
    assert (page["count"], page["results"][0]["event"]) == (2, "UPDATE")
    last = (await service.client.get(page["next"])).json()["results"][0]
    assert (last["event"], last["user_id"]) == ("ADD", "maya")
    assert last["input"] == [{"role": "user", "content": "I like tea."}]


async def test_events_are_found_by_several_words_at_once(service: Service) -> None:
    done = await service.add("I like tea.")
    cleared = (await service.client.delete(f"{MEMORIES}?user_id=maya")).json()["event_id"]

    async def ids(query: str) -> set[str]:
        answer = await service.client.get(f"/v1/events/?{query}")
        assert answer.status_code == 200, answer.text
        return {event["id"] for event in answer.json()["results"]}

    assert await ids("event_type=add,delete_all&status=succeeded,failed") == {done, cleared}
    assert await ids("event_type=DELETE_ALL&user_id=maya") == {cleared}
    assert await ids("event_type=SEARCH") == set()
    wrong = await service.client.get("/v1/events/?event_type=ADDED")
    assert (wrong.status_code, "DELETE_USER" in error_of(wrong)) == (400, True)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────

KEPT = [
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.path.startswith("/v")
    for method in sorted(route.methods or ())
]


@pytest.mark.parametrize(("method", "path"), KEPT)
async def test_no_route_answers_without_a_key(
    shared: Service,
    method: str,
    path: str,
) -> None:
    async with stranger(shared) as client:
        answer = await client.request(method, re.sub(r"{.*?}", str(UUID(int=1)), path), json={})
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
