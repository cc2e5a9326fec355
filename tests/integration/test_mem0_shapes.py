"""Shapes as older Mem0 clients and the documented API expect them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pipeline.ledger import Ledger
from tests.integration.test_api import ADD, LIVES, MAYA, Service, serving

MEMORIES = "/v1/memories/"


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as running:
        yield running


@pytest.fixture
async def staffed(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger, workers=True) as running:
        yield running


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
    named = [(one["message"], one["part"], one["type"]) for one in event["omitted"]]
    assert named == [(2, None, "tool_calls"), (5, 0, "image_url")]
    assert all(one["reason"] for one in event["omitted"])
    assert [one["role"] for one in event["payload"]["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_a_tools_answer_is_no_turn_that_a_search_finds(service: Service) -> None:
    await service.client.post(ADD, json={"messages": WITH_TOOLS} | MAYA)
    await service.engine.drain()
    found = await service.search("live", include=["turns"], threshold=0, top_k=50)
    assert found
    assert {row["attributed_to"] for row in found} == {"user"}


async def test_a_turn_without_any_text_ends_with_a_note(service: Service) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    body = {"messages": [{"role": "user", "content": [image]}]} | MAYA
    answer = await service.client.post(ADD, json=body)
    await service.engine.drain()
    event = await service.event(answer.json()["event_id"])
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert event["note"]
    assert [one["type"] for one in event["omitted"]] == ["image_url"]


async def test_messages_stored_as_they_are_keep_a_tools_role(staffed: Service) -> None:
    answer = await staffed.client.post(ADD, json={"messages": WITH_TOOLS, "infer": False} | MAYA)
    assert [one["type"] for one in answer.json()["omitted"]] == ["tool_calls", "image_url"]
    said = {row["memory"]: row["attributed_to"] for row in await staffed.listed()}
    assert said == {
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
