"""Every tool of mem0-mcp-server, called over stdio as an agent's host does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from report import USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

SERVER = StdioServerParameters(
    command=str(Path(sys.executable).with_name("mem0-mcp-server")),
    env=dict(os.environ) | {"MEM0_DEFAULT_USER_ID": USER},
)


def call(tool: str, **arguments: Any) -> Any:
    answer: Any = portal.call(session.call_tool, tool, arguments)
    assert not answer.isError, answer
    return json.loads(answer.content[0].text)


def listed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = call("get_memories")["results"]
    return rows


def add_memory() -> None:
    assert call("add_memory", text="I live in Porto.")["status"] == "PENDING"
    assert [line["event"] for line in wait_for_events()] == ["ADD"]


def search_memories() -> None:
    hits = call("search_memories", query="Where do I live?", limit=3)["results"]
    assert [hit["memory"] for hit in hits] == ["User lives in Porto"]


def get_memories() -> None:
    assert [row["memory"] for row in listed()] == ["User lives in Porto"]


def get_memory() -> None:
    [row] = listed()
    assert call("get_memory", memory_id=row["id"])["memory"] == "User lives in Porto"


def update_memory() -> None:
    [row] = listed()
    call("update_memory", memory_id=row["id"], text="Lives in Lisbon")
    assert [row["memory"] for row in listed()] == ["Lives in Lisbon"]


def list_entities() -> None:
    assert USER in [entity["name"] for entity in call("list_entities")["results"]]


def delete_memory() -> None:
    [row] = listed()
    call("delete_memory", memory_id=row["id"])
    assert listed() == []


def delete_all_memories() -> None:
    call("add_memory", text="I like tea.")
    wait_for_events()
    assert len(listed()) == 1
    call("delete_all_memories")
    assert listed() == []


def delete_entities() -> None:
    call("delete_entities", user_id=USER)
    assert USER not in [entity["name"] for entity in call("list_entities")["results"]]


TOOLS = (
    add_memory, search_memories, get_memories, get_memory, update_memory, list_entities,
    delete_memory, delete_all_memories, delete_entities,
)  # fmt: skip
with (
    start_blocking_portal() as portal,
    portal.wrap_async_context_manager(stdio_client(SERVER)) as (read, write),
    portal.wrap_async_context_manager(ClientSession(read, write)) as session,
):
    portal.call(session.initialize)
    report({tool.__name__: tool for tool in TOOLS})
