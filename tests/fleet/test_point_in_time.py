"""A ledger restored to a time: what was accepted before it is there and ends, the rest is gone."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.e2e.test_first_minutes import in_index
from tests.support.archived_postgres import ArchivedPostgres
from tests.support.chaos_ledger import LedgerWindow
from tests.support.stack import Client, Stack

USERS = ["maya", "ana"]


async def succeeded(client: Client, event_id: str) -> None:
    event = await client.ended(event_id)
    assert event["status"] == "SUCCEEDED", event


async def texts(client: Client) -> set[str]:
    return {row["memory"] for user in USERS for row in await client.memories(user)}


@pytest.mark.timeout(400)
async def test_a_deleted_user_is_back_and_a_waiting_event_ends(tmp_path: Path) -> None:
    with ArchivedPostgres(tmp_path / "server") as postgres:
        stack = Stack(tmp_path / "stack", {"MEMLANE_DATABASE_URL": postgres.url})
        async with stack, stack.client() as client:
            await succeeded(client, await client.add("maya", "I live in Turku."))
            await asyncio.to_thread(postgres.take_base_backup)
            await succeeded(client, await client.add("maya", "I have a cat."))
            before = await texts(client)
            stack.kill("worker-1", signal.SIGSTOP)
            waiting = await client.add("maya", "I like rye bread.")
            window = LedgerWindow(postgres.url)
            [row] = await window.rows("SELECT clock_timestamp()::text AS now")
            stack.kill("worker-1", signal.SIGCONT)
            await succeeded(client, waiting)
            await succeeded(client, await client.add("ana", "I own a boat."))
            gone = await client.http.delete("/v1/memories/", params={"user_id": "maya"})
            assert gone.status_code == 200, gone.text
            assert await client.memories("maya") == []
            [wal] = await window.rows("SELECT pg_walfile_name(pg_switch_wal()) AS file")
            await window.close()
            await asyncio.to_thread(postgres.archived_until, wal["file"])
        await asyncio.to_thread(postgres.stop)
        await asyncio.to_thread(postgres.restore_to, row["now"])
        async with stack, stack.client() as client:
            await succeeded(client, waiting)
            assert before < await texts(client)
            assert await client.memories("ana") == []
            done = await asyncio.to_thread(stack.command, "reindex")
            assert done.returncode == 0, done.stdout + done.stderr
            listed = {row["id"] for row in await client.memories("maya")}
            assert await in_index(stack, USERS) == listed
            hits = (await client.search("maya", "Where does Maya live?"))["results"]
            assert "Turku" in hits[0]["memory"]
            assert (await client.http.get("/v1/stats/")).json()["identity"] is True
