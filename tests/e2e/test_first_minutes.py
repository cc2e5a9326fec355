"""First steps of a new user, on real PostgreSQL, Valkey, Chroma, Celery and HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import Any

import asyncpg
import pytest

from pipeline.bootstrap import GATHER_S
from pipeline.domain.errors import StoreUnavailable
from tests.support.chaos_check import index_of
from tests.support.chaos_ledger import database_url
from tests.support.stack import Client, Stack, wait_until
from workers.sweeper_jobs import STALE_FOR_S

# Time of the writes themselves.
WRITE_S = 10.0


async def test_the_printed_curl_works_as_printed(stack: Stack, client: Client) -> None:
    printed = stack.command("up").stdout
    [add] = re.findall(r"  (curl -s \S+/v3/memories/add/ (?:.*\\\n)*.*)\n", printed)
    answer = await asyncio.to_thread(subprocess.check_output, ["bash", "-c", add])
    event = await client.ended(json.loads(answer)["event_id"])
    assert event["status"] == "SUCCEEDED"
    assert {row["event"] for row in event["results"]} == {"ADD"}


async def test_a_conversation_is_added_changed_known_and_found(client: Client) -> None:
    first = await client.ended(await client.add("lea", "I live in Berlin. I like jazz."))
    moved = await client.ended(await client.add("lea", "I moved to Munich. I like jazz."))
    assert [row["event"] for row in first["results"]] == ["ADD", "ADD"]
    rows = {row["event"]: row for row in moved["results"]}
    assert "Berlin" in rows["UPDATE"]["old_memory"]
    assert rows["NOOP"]["id"] in {row["id"] for row in first["results"]}
    assert all(row["reason"] for row in moved["results"])
    answer = await client.search("lea", "Where does the user live?")
    assert "Munich" in answer["results"][0]["memory"]
    assert "Munich" in {relation["target"] for relation in answer["relations"]}
    assert not answer["degraded"]


async def test_infer_false_answers_with_what_was_stored(client: Client) -> None:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "The gate code changes in May."}],
        "user_id": "verbatim",
        "infer": False,
    }
    answer = (await client.http.post("/v3/memories/add/", json=body)).json()
    assert answer["status"] == "SUCCEEDED"
    assert [row["data"]["memory"] for row in answer["results"]] == [body["messages"][0]["content"]]
    older = {**body, "messages": "I own a boat.", "infer": True, "async_mode": False}
    [line] = (await client.http.post("/v1/memories/", json=older)).json()
    assert line["event"] == "ADD"


async def test_many_users_at_once_and_every_store_agrees(stack: Stack, client: Client) -> None:
    """Ledger, list and index agree, and each event has its receipt."""
    users = [f"crowd-{n}" for n in range(25)]
    texts = ["I live in Bergen.", "I own a boat.", "I like rye bread.", "I live in Tromsø."]
    ids = [i for text in texts for i in await asyncio.gather(*(client.add(u, text) for u in users))]
    events = await client.all_ended(ids, within_s=120)
    assert {event["status"] for event in events} == {"SUCCEEDED"}
    assert all(event["results"] for event in events)
    listed = {m["id"] for user in users for m in await client.memories(user)}
    assert listed == {
        row["id"] for event in events for row in event["results"] if row["event"] == "ADD"
    }
    assert await in_ledger(stack, users) == listed

    async def follows() -> bool:
        try:
            return await in_index(stack, users) == listed
        except StoreUnavailable:  # Chroma may answer 500 while it creates a collection
            return False

    # Sooner than the sweeper would repair stale vectors.
    assert GATHER_S + WRITE_S < STALE_FOR_S
    await wait_until(follows, within_s=GATHER_S + WRITE_S, what="the index holds what is listed")


async def test_metrics_count_what_api_and_workers_did(
    client: Client, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--containers"):
        pytest.skip("each container has metrics of its own, and the API's need a token there")
    await client.ended(await client.add("metrics", "I like walnuts."))
    text = (await client.http.get("/metrics")).text
    for name in (
        "memlane_events_accepted_total",
        'memlane_stage_seconds_count{stage="apply"}',
        'memlane_events_ended_total{code="",status="SUCCEEDED"}',
        "memlane_queue_oldest_seconds",
    ):
        assert re.search(re.escape(name) + r" [0-9.]+", text), name


async def test_no_log_holds_what_a_user_said(stack: Stack, client: Client) -> None:
    await client.ended(await client.add("discreet", "I collect zyzzyva beetles."))
    await client.search("discreet", "zyzzyva")
    logs = await asyncio.to_thread(stack.logs)
    assert logs
    for name, text in logs.items():
        assert "zyzzyva" not in text, name


async def in_ledger(stack: Stack, users: list[str]) -> set[str]:
    connection = await asyncpg.connect(database_url(stack))
    rows = await connection.fetch(
        "SELECT id FROM memories WHERE user_id = ANY($1) AND state = 'ACTIVE'", users
    )
    await connection.close()
    return {str(row["id"]) for row in rows}


async def in_index(stack: Stack, users: list[str]) -> set[str]:
    async with index_of(stack) as index:
        return {
            str(record.id)
            for name in await index.list_cols()
            if name.startswith("memories-")
            for user in users
            for record in await index.list(name, where={"user_id": user}, limit=1000)
        }
