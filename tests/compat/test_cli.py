"""The `mem0` command: its output with --output json."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.compat.environments import python_with
from tests.support.stack import Stack

Run = Callable[..., Any]


@pytest.fixture
def mem0(environment: dict[str, str]) -> Run:
    executable = python_with("mem0-cli==0.2.13") / "mem0"

    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [executable, *arguments, "--output", "json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def user() -> str:
    return f"cli-{uuid4().hex[:12]}"


@pytest.fixture
def memory_id(mem0: Run, user: str, stack: Stack) -> str:
    """Id of a memory that was added on the command line."""
    [queued] = mem0("add", "I live in Porto.", "--user-id", user, "--metadata", '{"trip": "x"}')
    assert queued["status"] == "PENDING"
    headers = {"Authorization": f"Token {stack.key}"}
    url = f"{stack.url}/v1/event/{queued['event_id']}/?wait=60"
    event = httpx.get(url, headers=headers, timeout=90).json()
    assert event["status"] == "SUCCEEDED", event
    return str(event["results"][0]["id"])


@pytest.mark.timeout(600)
def test_newest_command_adds_lists_searches_and_gets(mem0: Run, user: str, memory_id: str) -> None:
    listed = mem0("list", "--user-id", user)
    assert [memory["id"] for memory in listed["data"]] == [memory_id]
    by_category = mem0("list", "--user-id", user, "--category", "personal")
    assert [memory["memory"] for memory in by_category["data"]] == ["User lives in Porto"]
    [hit] = mem0("search", "where is home, Porto?", "--user-id", user, "--threshold", "0")
    assert (hit["id"], hit["metadata"]) == (memory_id, {"trip": "x"})
    got = mem0("get", memory_id)
    assert "User lives in Porto" in json.dumps(got)


@pytest.mark.timeout(600)
def test_newest_command_updates_and_deletes(mem0: Run, user: str, memory_id: str) -> None:
    mem0("update", memory_id, "Lives in Lisbon")
    assert "Lives in Lisbon" in json.dumps(mem0("get", memory_id))
    mem0("delete", memory_id)
    assert mem0("list", "--user-id", user)["data"] == []
    [line] = mem0("add", "As it is.", "--user-id", user, "--no-infer")["results"]
    assert line["data"]["memory"] == "As it is."
    mem0("delete", "--all", "--user-id", user, "--force")
    assert mem0("list", "--user-id", user)["data"] == []


@pytest.mark.timeout(600)
def test_newest_command_knows_entities_and_events(mem0: Run, user: str, memory_id: str) -> None:
    [mine] = [row for row in mem0("entity", "list", "users") if row["name"] == user]
    assert (mine["type"], mine["total_memories"]) == ("user", 1)
    [event] = [row for row in mem0("event", "list") if row["payload"]["user_id"] == user]
    assert event["event_type"] == "ADD"
    shown = json.dumps(mem0("event", "status", event["id"]))
    assert "SUCCEEDED" in shown
    assert memory_id in shown
    mem0("entity", "delete", "--user-id", user, "--force")
    assert user not in {row["name"] for row in mem0("entity", "list", "users")}


@pytest.mark.timeout(600)
def test_newest_command_says_that_it_is_connected(mem0: Run) -> None:
    assert mem0("status")["data"]["connected"] is True
