"""The `memlane` command against a real stack: keys, events and replays."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.app import app
from deploy.stack.failure import StackError
from tests.support.stack import Client, Stack, wait_until

SCOPE = "typed"


async def memlane(stack: Stack, *arguments: str) -> Result:
    """Run the command in a thread, because it blocks."""
    key_file = str(stack.data_dir / "api_key")
    options = ("--url", stack.url, "--key-file", key_file)
    return await asyncio.to_thread(CliRunner().invoke, app, [*options, *arguments])


async def printed(stack: Stack, *arguments: str) -> str:
    result = await memlane(stack, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


async def answered(stack: Stack, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(await printed(stack, *arguments, "--json")))


async def test_a_key_is_created_listed_used_and_revoked(stack: Stack, client: Client) -> None:
    key = (await printed(stack, "keys", "create", "reports", "--scope", "read")).strip()
    read = {"Authorization": f"Token {key}"}
    assert (await client.http.get("/v1/ping/", headers=read)).status_code == 200
    [row] = [
        k for k in (await answered(stack, "keys", "list"))["results"] if k["name"] == "reports"
    ]
    assert row["scope"] == "read"
    assert row["id"] in await printed(stack, "keys", "list")
    assert "revoked" in await printed(stack, "keys", "revoke", row["id"])
    assert (await client.http.get("/v1/ping/", headers=read)).status_code == 401


async def test_a_lost_admin_key_is_replaced_through_the_database(
    stack: Stack, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**stack.settings, "MEMLANE_DATA_DIR": str(stack.data_dir)}.items():
        monkeypatch.setenv(name, value)
    new = (await printed(stack, "keys", "recover", "emergency")).strip()
    headers = {"Authorization": f"Token {new}"}
    rows = (await client.http.get("/v1/keys/", headers=headers)).json()["results"]
    [row] = [row for row in rows if row["name"] == "emergency"]
    assert (row["scope"], row["expires_at"], row["member"]) == ("admin", None, None)
    await printed(stack, "keys", "revoke", row["id"])


async def test_an_event_is_listed_and_its_receipt_shown(stack: Stack, client: Client) -> None:
    event_id = await client.add("receipt", "I live in Turku.")
    shown = await printed(stack, "events", "show", event_id, "--wait", "60")
    for text in (event_id, "SUCCEEDED", "user=receipt", "ADD", "Turku", "apply"):
        assert text in shown
    listed = await printed(stack, "events", "list", "--user", "receipt")
    assert event_id in listed
    assert (await answered(stack, "events", "list", "--user", "receipt"))["count"] == 1
    assert "No events match." in await printed(stack, "events", "list", "--user", "stranger")


async def test_an_event_that_ended_badly_is_retried(stack: Stack, client: Client) -> None:
    stack.kill("worker-1", signal.SIGSTOP)
    try:
        event_id = await client.add("retried", "I own a canoe.")
        answer = await client.http.post(f"/v1/event/{event_id}/cancel/")
        assert answer.status_code == 200, answer.text
        assert "PENDING again" in await printed(stack, "events", "retry", event_id)
        assert (await client.http.post(f"/v1/event/{event_id}/cancel/")).status_code == 200
        many = await printed(stack, "events", "retry", "--code", "CANCELLED", "--user", "retried")
        assert many == "1 events are PENDING again.\n"
    finally:
        stack.kill("worker-1", signal.SIGCONT)
    assert (await client.ended(event_id))["status"] == "SUCCEEDED"
    for option in ("--graph", "--partial"):
        none = await printed(stack, "events", "retry", option, "--user", "retried")
        assert none == "0 events are PENDING again.\n"


async def test_an_error_of_the_api_ends_the_command_with_its_message(stack: Stack) -> None:
    result = await memlane(stack, "events", "show", "no-uuid")
    assert isinstance(result.exception, StackError)
    assert str(result.exception) == "400: event_id should be a valid UUID"


async def test_a_scope_is_replayed_compared_and_switched(stack: Stack, client: Client) -> None:
    await client.ended(await client.add(SCOPE, "I live in Turku. I own a canoe."))
    start = ("replay", "start", "--user", SCOPE, "--recorded")
    replay_id = (await answered(stack, *start))["id"]

    async def ready() -> bool:
        replay = await answered(stack, "replay", "show", replay_id)
        return bool(replay["status"] == "READY")

    await wait_until(ready, within_s=60, what="a replay that is READY")
    assert "would change nothing" in await printed(stack, "replay", "diff", replay_id)
    assert "SWITCHED" in await printed(stack, "replay", "switch", replay_id)
    assert replay_id in await printed(stack, "replay", "list")
    second = (await answered(stack, *start))["id"]
    assert "discarded" in await printed(stack, "replay", "discard", second)
