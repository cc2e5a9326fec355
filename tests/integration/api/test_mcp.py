"""The MCP endpoint and its twelve tools, through a client session of the official SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from api.mcp.tools import TOOLS
from pipeline.erasure import service as erasure
from pipeline.stores import Ledger
from tests.support.api_service import Service, error_of, serving

NAMES = {
    "add_memory", "search_memories", "get_memories", "get_memory", "update_memory",
    "delete_memory", "delete_all_memories", "delete_entities", "list_entities", "list_events",
    "explore_graph", "get_event_status",
}  # fmt: skip
MAYA = {"user_id": "maya"}


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built
        await built.app.state.mcp.close()


@asynccontextmanager
async def session(service: Service, key: str | None = None) -> AsyncIterator[ClientSession]:
    transport = httpx2.ASGITransport(service.app)
    headers = {"Authorization": f"Bearer {key or service.key}"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        streamable_http_client("http://memlane/mcp", http_client=http) as (reads, writes),
        ClientSession(reads, writes) as opened,
    ):
        await opened.initialize()
        yield opened


async def test_the_server_tells_its_version(service: Service) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    accept = {"Accept": "application/json, text/event-stream"}
    answer = await service.client.post("/mcp", json=body, headers=accept)
    assert answer.json()["result"]["serverInfo"]["version"] == service.app.version


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (b'{"user_id": "maya", "user_id": "otto"}', 400, "user_id"),
        (b'{"user_id": "maya", "filters": {"metadata": {"n": %s}}}' % (b"9" * 30), 400, "64 bits"),
        (b'{"user_id": "maya", "filters": %s}' % (b"[" * 65 + b"]" * 65), 400, "deeper than"),
        (b'{"user_id": "%s"}' % (b"x" * 200_000), 413, "larger than"),
    ],
)
async def test_a_body_has_the_limits_of_the_rest_api(
    service: Service, arguments: bytes, status: int, words: str
) -> None:
    """Of a repeated key the last value counted, though a gateway may check the first."""
    body = (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
        b' "params": {"name": "get_memories", "arguments": %s}}' % arguments
    )
    accept = {"Accept": "application/json, text/event-stream"}
    answer = await service.client.post("/mcp", content=body, headers=accept)
    assert answer.status_code == status, answer.text
    assert words in error_of(answer)


async def call(opened: ClientSession, tool: str, **arguments: Any) -> Any:
    result = await opened.call_tool(tool, arguments)
    assert not result.is_error, result
    return _body(result)


async def refusal(opened: ClientSession, tool: str, **arguments: Any) -> str:
    result = await opened.call_tool(tool, arguments)
    assert result.is_error
    return str(_body(result)["error"])


def _body(result: Any) -> Any:
    """Response of the API, parsed from the only content of the result."""
    [content] = result.content
    return json.loads(content.text)


async def test_the_tools_are_the_twelve_that_agents_know(service: Service) -> None:
    async with session(service) as opened:
        listed = (await opened.list_tools()).tools
    assert {tool.name for tool in listed} == NAMES
    assert len(listed) == len(TOOLS)
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)


async def test_tools_that_only_read_and_tools_that_destroy_are_marked(service: Service) -> None:
    async with session(service) as opened:
        tools = {tool.name: tool.annotations for tool in (await opened.list_tools()).tools}
    reading = {name for name, hints in tools.items() if hints and hints.read_only_hint}
    destroying = {name for name, hints in tools.items() if hints and hints.destructive_hint}
    assert reading == {
        *("search_memories", "get_memories", "get_memory"),
        *("list_entities", "list_events", "get_event_status", "explore_graph"),
    }
    assert destroying == {
        *("update_memory", "delete_memory", "delete_all_memories", "delete_entities"),
    }


async def test_rows_hold_what_an_agent_reads_and_pages_no_links(service: Service) -> None:
    await service.add("I live in Bern. I like jazz.")
    async with session(service) as opened:
        page = await call(opened, "get_memories", page_size=1, **MAYA)
        assert page["more_pages"]
        assert not {"next", "previous"} & set(page)
        [row] = page["results"]
        assert {"id", "memory", "user_id"} <= set(row)
        assert len(row) <= 9
        assert None not in row.values()
        events = await call(opened, "list_events", page_size=1)
        assert "inside" not in json.dumps(events)
        turns = {"include": ["facts", "turns"], "max_tokens": 100}
        answer = await call(opened, "search_memories", query="jazz", threshold=0, **turns, **MAYA)
        assert {row["type"] for row in answer["results"]} == {"fact", "turn"}
        assert "jazz" in answer["context"]


async def test_an_agent_remembers_finds_changes_and_deletes(service: Service) -> None:
    async with session(service) as opened:
        event = await call(opened, "add_memory", text="I live in Bern.", **MAYA)
        assert event["status"] == "PENDING"
        await service.engine.drain()
        status = await call(opened, "get_event_status", event_id=event["event_id"])
        assert (status["status"], status["results"][0]["event"]) == ("SUCCEEDED", "ADD")
        memory_id = status["results"][0]["id"]

        hits = await call(opened, "search_memories", query="lives in Bern", threshold=0, **MAYA)
        assert [row["id"] for row in hits["results"]] == [memory_id]
        listed = await call(opened, "get_memories", filters=MAYA, page_size=5)
        assert (listed["count"], listed["results"][0]["id"]) == (1, memory_id)
        events = await call(opened, "list_events", status="SUCCEEDED", **MAYA)
        assert [row["id"] for row in events["results"]] == [event["event_id"]]

        await call(opened, "update_memory", memory_id=memory_id, text="User lives in Basel")
        assert (await call(opened, "get_memory", memory_id=memory_id))["memory"].endswith("Basel")
        await call(opened, "delete_memory", memory_id=memory_id)
        assert await refusal(opened, "get_memory", memory_id=memory_id) == "Memory not found!"


async def test_an_agent_chooses_what_a_search_brings(service: Service) -> None:
    await service.add("I live in Bern. I like jazz.")
    options = {"rerank": True, "keyword_search": True, "filter_memories": True, "threshold": 0.99}
    async with session(service) as opened:
        answer = await call(
            opened, "search_memories", query="jazz", fields=["memory"], **options, **MAYA
        )
        assert answer["not_reranked"] == "NOT_CONFIGURED"
        [row] = answer["results"]
        assert row == {"id": row["id"], "memory": "User likes jazz"}
        answer = await call(
            opened, "search_memories", query="jazz", fields=["memo"], **options, **MAYA
        )
        assert answer["results"] == [{"id": row["id"]}]


def edges(page: Any) -> list[tuple[str, str, str]]:
    return [(row["source"], row["relationship"], row["target"]) for row in page["results"]]


async def test_an_agent_explores_the_graph_at_a_time(service: Service) -> None:
    for text, at in (
        ("I live in Bern. My sister is Ines. Ines works at Bosch.", "2026-01-05"),
        ("I moved to Porto.", "2026-06-05"),
    ):
        await service.add(text, timestamp=int(datetime.fromisoformat(at + "T00:00Z").timestamp()))
    async with session(service) as opened:
        near = await call(opened, "explore_graph", entity="User", hops=2, **MAYA)
        assert set(edges(near)) == {
            ("User", "lives_in", "Porto"), ("User", "has_sister", "Ines"),
            ("Ines", "works_at", "Bosch"),
        }  # fmt: skip
        bosch = next(row for row in near["results"] if row["target"] == "Bosch")
        assert [step["target"] for step in bosch["path"]] == ["Ines"]
        assert bosch["valid_from"].startswith("2026-01-05")
        assert {"memory_id", "source_id"} <= set(bosch)
        by_id = await call(opened, "explore_graph", entity_id=bosch["source_id"], **MAYA)
        assert ("Ines", "works_at", "Bosch") in edges(by_id)
        earlier = await call(opened, "explore_graph", valid_at="2026-03-01", **MAYA)
        assert ("User", "lives_in", "Bern") in edges(earlier)
        before = await call(opened, "explore_graph", as_of="2025-12-01", **MAYA)
        assert before["count"] == 0
        first = await call(opened, "explore_graph", page_size=1, **MAYA)
        assert (len(first["results"]), first["more_pages"]) == (1, True)


async def test_ids_beside_filters_narrow_them(service: Service) -> None:
    await service.add("I live in Bern.")
    async with session(service) as opened:
        both = await call(opened, "get_memories", filters={"app_id": "x"}, **MAYA)
        assert both["count"] == 0


async def test_an_agent_can_have_a_user_erased(service: Service) -> None:
    await service.add("I live in Bern.")
    async with session(service) as opened:
        answer = await call(opened, "delete_entities", **MAYA)
        ledger = service.engine.ledger
        await erasure.finish(erasures=ledger.erasures, index=service.engine.services.index)
        status = await call(opened, "get_event_status", event_id=answer["event_id"])
        assert (status["status"], status["event_type"]) == ("SUCCEEDED", "DELETE_USER")
        assert (await call(opened, "get_memories", filters=MAYA))["count"] == 0


async def test_an_agent_can_list_the_owners_of_memories(service: Service) -> None:
    await service.add("I live in Bern.")
    async with session(service) as opened:
        [maya] = (await call(opened, "list_entities"))["results"]
        assert (maya["type"], maya["id"], maya["total_memories"]) == ("user", "maya", 1)


async def test_an_agent_can_delete_all_memories_of_a_user(service: Service) -> None:
    await service.add("I live in Bern.")
    async with session(service) as opened:
        await call(opened, "delete_all_memories", **MAYA)
        assert (await call(opened, "get_memories", filters=MAYA))["count"] == 0


REFUSED = {
    "no id": ("add_memory", {"text": "I live in Bern."}),
    "nothing said": ("add_memory", MAYA),
    "no id to search by": ("search_memories", {"query": "Bern"}),
    "no UUID": ("get_memory", {"memory_id": "../events"}),
    "a dot": ("get_memory", {"memory_id": "."}),
    "another route": ("get_event_status", {"event_id": "../stats"}),
    "a dot to delete": ("delete_memory", {"memory_id": "./"}),
    "filters as a string": ("search_memories", {"query": "x", "filters": "maya"}),
    "an unknown memory": ("delete_memory", {"memory_id": "6f1c0e57-6f0e-4f3f-8d0c-0a6d5f3b1c11"}),
    "a graph of no one": ("explore_graph", {"entity": "User"}),
    "too many hops": ("explore_graph", {"hops": 4, **MAYA}),
    "no id at all": ("get_event_status", {}),
    "two to erase": ("delete_entities", {"user_id": "a", "agent_id": "b"}),
}


@pytest.mark.parametrize(("tool", "arguments"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_the_api_refuses_the_tool_says_in_its_words(
    service: Service, tool: str, arguments: dict[str, Any]
) -> None:
    async with session(service) as opened:
        assert await refusal(opened, tool, **arguments)


MISSPELT = {
    "a delete": ("delete_all_memories", {"user": "maya", "app_id": "chat"}),
    "a delete that only looks": ("delete_all_memories", {"app_id": "chat", "dry_run": True}),
    "an erasure": ("delete_entities", {"app_id": "chat", "userId": "maya"}),
    "a list": ("get_memories", {"user": "maya", "app_id": "chat"}),
    "a search": ("search_memories", {"query": "home", "userid": "maya", "app_id": "chat"}),
}


@pytest.mark.parametrize(("tool", "arguments"), MISSPELT.values(), ids=MISSPELT.keys())
async def test_an_argument_that_is_not_known_is_refused(
    service: Service, tool: str, arguments: dict[str, Any]
) -> None:
    """Ignored, it would widen what is read or deleted."""
    for user in ("maya", "jon"):
        await service.add("I live in Bern.", user_id=user, app_id="chat")
    async with session(service) as opened:
        assert "has no argument" in await refusal(opened, tool, **arguments)
    await service.engine.drain()
    assert len(await service.listed(app_id="chat")) == 2


WRONG_KINDS = {
    "a delete by a list": ("delete_all_memories", {"user_id": ["maya", "true"]}),
    "a delete by a boolean": ("delete_all_memories", {"user_id": True}),
    "an erasure by an object": ("delete_entities", {"user_id": {"id": "maya"}}),
    "a page": ("get_memories", {"user_id": "maya", "page": [1]}),
    "a list of events": ("list_events", {"user_id": "maya", "status": ["FAILED", "PENDING"]}),
    "a graph": ("explore_graph", {"user_id": "maya", "entity": ["Bern"]}),
}


@pytest.mark.parametrize(("tool", "arguments"), WRONG_KINDS.values(), ids=WRONG_KINDS.keys())
async def test_a_value_of_another_kind_is_refused(
    service: Service, tool: str, arguments: dict[str, Any]
) -> None:
    for user in ("maya", "true"):
        await service.add("I live in Bern.", user_id=user)
    async with session(service) as opened:
        assert "expected a value of type" in await refusal(opened, tool, **arguments)
    await service.engine.drain()
    assert await service.listed(user_id="maya")
    assert await service.listed(user_id="true")


async def test_text_beside_messages_is_refused(service: Service) -> None:
    messages = [{"role": "user", "content": "I live in Bern."}]
    async with session(service) as opened:
        refused = await refusal(
            opened, "add_memory", **MAYA, text="I own a boat.", messages=messages
        )
    assert "not both" in refused


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_stream_or_an_end_of_a_session_is_refused_as_the_protocol_says(
    service: Service, method: str
) -> None:
    """Clients open a stream after their first request, and take 405 as a server without one."""
    headers = {"Accept": "application/json, text/event-stream"}
    answer = await service.client.request(method, "/mcp", headers=headers)
    assert answer.status_code == 405, answer.text


async def test_no_key_no_tools(service: Service) -> None:
    for headers in ({}, {"Authorization": "Bearer ml_wrong"}):
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(service.app)) as http:
            answer = await http.post("http://memlane/mcp", json={}, headers=headers)
        assert answer.status_code == 401
        assert "API key" in answer.json()["error"]


async def test_another_key_sees_another_project(service: Service) -> None:
    await service.add("I live in Bern.")
    _, key = await service.engine.ledger.projects.create("other")
    async with session(service, key) as opened:
        assert (await call(opened, "get_memories", filters=MAYA))["count"] == 0


def test_a_process_without_mcp_requests_does_not_import_it() -> None:
    code = "import api.app, sys; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


async def test_an_agent_reads_an_earlier_time(service: Service) -> None:
    await service.add("I live in Porto.")
    between = (await service.engine.ledger.now()).isoformat()
    await service.add("I moved to Lisbon.")
    async with session(service) as opened:
        past = {"as_of": between, **MAYA}
        [then] = (await call(opened, "get_memories", **past))["results"]
        [hit] = (await call(opened, "search_memories", query="home", threshold=0, **past))[
            "results"
        ]
        row = await call(opened, "get_memory", memory_id=then["id"], as_of=between)
        both = await call(opened, "get_memories", include_superseded=True, **MAYA)
    assert then["memory"] == hit["memory"] == row["memory"] == "User lives in Porto"
    states = [row.get("lifecycle_state") for row in both["results"]]
    assert states == [None, "superseded"]
