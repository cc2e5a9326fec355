"""`memlane import`, killed with SIGKILL and started again: nothing is lost or stored twice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from tests.support.stack import ROOT, Client, Stack, wait_until

# Two requests; the memories of a user in one request are one event.
MEMORIES, TURNS, USERS = 600, 60, 40
WITHIN_S = 120.0
Import = Callable[[], Awaitable[asyncio.subprocess.Process]]


def importing(stack: Stack, *arguments: str) -> Import:
    """A function that starts the command."""
    key_file = str(stack.data_dir / "api_key")
    options = ("--url", stack.url, "--key-file", key_file, "import", *arguments)

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "deploy.cli", *options),
            cwd=ROOT,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )

    return start


async def killed_at(start: Import, reached: Callable[[], Awaitable[bool]]) -> None:
    """Kill the command with SIGKILL as soon as it has done something."""
    process = await start()
    await wait_until(reached, within_s=WITHIN_S, what="the first part of the import")
    process.kill()
    assert await process.wait() == -9


async def completed(start: Import) -> None:
    process = await start()
    _, errors = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode == 0, errors.decode()


async def test_memories_of_a_killed_import_are_complete_after_the_next(
    stack: Stack, client: Client, tmp_path: Path
) -> None:
    run = uuid4().hex
    file = tmp_path / "memories.json"
    rows = [
        {
            "id": str(uuid4()),
            "memory": f"Owns book {number}.",
            "user_id": f"{run} {number % USERS}",
            "agent_id": run,
            "created_at": "2025-03-01T10:00:00Z",
        }
        for number in range(MEMORIES)
    ]
    file.write_bytes(orjson.dumps(rows))
    start = importing(stack, str(file), "--from", "mem0-platform")

    async def count() -> int:
        answer = await client.http.post(
            "/v3/memories/", json={"filters": {"agent_id": run}}, params={"page_size": 1}
        )
        return int(answer.json()["count"])

    async def some() -> bool:
        return await count() > 0

    await killed_at(start, some)
    await completed(start)
    assert await count() == MEMORIES
    await completed(start)
    assert await count() == MEMORIES


async def test_turns_of_a_killed_import_are_added_once(
    stack: Stack, client: Client, tmp_path: Path
) -> None:
    user = uuid4().hex
    file = tmp_path / "conversations.jsonl"
    lines = [
        {"messages": [{"role": "user", "content": f"I own book {number} of this shelf."}]}
        for number in range(TURNS)
    ]
    file.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    start = importing(stack, str(file), "--from", "chats", "--user", user)

    async def events() -> list[dict[str, Any]]:
        parameters: dict[str, str | int] = {"page_size": 100, "user_id": user}
        answer = await client.http.get("/v1/events/", params=parameters)
        return list(answer.json()["results"])

    async def some() -> bool:
        return len(await events()) > 0

    await killed_at(start, some)
    await completed(start)
    ended = await events()
    assert len(ended) == TURNS
    assert {event["status"] for event in ended} == {"SUCCEEDED"}
    shown = await client.event(str(ended[0]["id"]))
    assert shown["priority"] == "low"
