"""A model that often answers unusably, and a used-up budget: over HTTP, on a whole stack."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.eval.scenarios.play import ended
from tests.support.llm_server import LLMServer
from tests.support.stack import Client, Stack

FIRST, SECOND = "openai/first", "openai/second"
ADDS, USERS = 200, 100
TURNS = (
    "My name is Ann and I live in Rome.",
    "I moved from Rome to Oslo and I work at Siemens.",
)
MODES = ["consolidate", "append", "turns"]
# Adds of one user: more than enough for a budget of a few calls.
TOKENS, MOST_ADDS = 15_000, 40


@pytest.fixture
async def first() -> AsyncIterator[LLMServer]:
    async with LLMServer(seed=15) as server:
        yield server


@pytest.fixture
async def second() -> AsyncIterator[LLMServer]:
    async with LLMServer() as server:
        yield server


def settings(first: LLMServer, second: LLMServer) -> dict[str, str]:
    fallback = {"model": SECOND, "api_base": second.base_url, "api_key": "sk-test"}
    return {
        "MEMLANE_LLM__MODEL": FIRST,
        "MEMLANE_LLM__API_BASE": first.base_url,
        "MEMLANE_LLM__API_KEY": "sk-test",
        "MEMLANE_LLM__FALLBACKS": json.dumps([fallback]),
        "MEMLANE_GRAPH": "off",
        "MEMLANE_WORKERS": "2",
        "MEMLANE_SUMMARY_MESSAGES": "0",
    }


async def test_no_add_fails_and_a_used_up_budget_is_named(
    tmp_path: Path, first: LLMServer, second: LLMServer
) -> None:
    with Stack(tmp_path / "stack", settings(first, second)) as stack:
        async with stack.client() as client:
            await _adds_with_a_bad_model(client, first, second)
            await _adds_beyond_a_budget(client, first, second)


async def _adds_with_a_bad_model(client: Client, first: LLMServer, second: LLMServer) -> None:
    """Of the first model's answers 20 % are malformed and 20 % truncated: no add fails."""
    first.on("any", "malformed", probability=0.2)
    first.on("any", "truncated", probability=0.2)
    ids = [
        event_id
        for turn in TURNS
        for event_id in await asyncio.gather(*(client.add(f"user-{n}", turn) for n in range(USERS)))
    ]
    assert len(ids) == ADDS
    events = await asyncio.gather(*(ended(client, event_id) for event_id in ids))
    assert Counter(event["status"] for event in events) == {"SUCCEEDED": ADDS}
    assert all(event["results"] for event in events)
    assert {model for event in events for model in event["usage"]["models"]} == {FIRST, SECOND}
    assert 0 < len(second.calls) < len(first.calls)
    first.rules.clear()


async def _adds_beyond_a_budget(client: Client, first: LLMServer, second: LLMServer) -> None:
    """The budget of a user leads from consolidate over append to turns; the receipts say so."""
    await _set_budget(client, {"user": {"tokens": TOKENS, "per": "month"}})
    events: list[dict[str, Any]] = []
    while (not events or events[-1]["mode"] != "turns") and len(events) < MOST_ADDS:
        text = f"My friend number {len(events)} likes tea and lives in Oslo."
        events.append(await ended(client, await client.add("thrifty", text)))
    modes = [event["mode"] for event in events]
    assert list(dict.fromkeys(modes)) == MODES
    assert sorted(modes, key=MODES.index) == modes
    assert {event["status"] for event in events} == {"SUCCEEDED"}
    for event in events:
        lowered = event["mode"] != "consolidate"
        assert (event["mode_reason"] is not None) is lowered, event
    assert events[-1]["mode_reason"] == (
        f"Budget: 100% of the user's {TOKENS} tokens per month is used."
    )
    # The last add called no model, and its words are found as a turn.
    calls = len(first.calls) + len(second.calls)
    event = await ended(client, await client.add("thrifty", "My parrot is called Mango."))
    assert (event["mode"], event["usage"]["calls"]) == ("turns", 0)
    assert len(first.calls) + len(second.calls) == calls
    answer = await client.search("thrifty", "parrot", include=["turns"], threshold=0)
    assert answer["results"][0]["memory"] == "My parrot is called Mango."


async def _set_budget(client: Client, budget: dict[str, Any]) -> None:
    ping = (await client.http.get("/v1/ping/")).json()
    path = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
    answer = await client.http.patch(path, json={"budget": budget})
    assert answer.status_code == 200, answer.text
