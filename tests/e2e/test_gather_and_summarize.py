"""Gathering and summaries in a whole stack: over HTTP, by real workers, among kills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chaos_ledger import LedgerWindow, database_url
from tests.support.llm_server import LLMServer
from tests.support.stack import Client, Stack, wait_until

FACTS = ("I live in Bergen.", "I own a boat.", "I like rye bread.", "I play the tuba.")


@pytest.fixture
async def model() -> AsyncIterator[LLMServer]:
    async with LLMServer() as server:
        yield server


def settings(model: LLMServer) -> dict[str, str]:
    return {
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": model.base_url,
        "MEMLANE_LLM__API_KEY": "sk-test",
        "MEMLANE_SUMMARY_MESSAGES": "2",
    }


async def versions(client: Client, user_id: str) -> list[dict[str, Any]]:
    answer = await client.http.get("/v1/summaries/", params={"user_id": user_id})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def test_summaries_and_gathered_turns_survive_kills(tmp_path: Path, model: LLMServer) -> None:
    with Stack(tmp_path / "stack", settings(model)) as stack:
        async with stack.client() as client:
            await _summaries(stack, client, model)
            await _gathering(stack, client, model)


async def _summaries(stack: Stack, client: Client, model: LLMServer) -> None:
    """A worker dies in the middle of a summary: it is made later, and the next add reads it."""
    model.on("summary", "delay", times=1, ms=60_000)
    await client.ended(await client.add("maya", "I moved to Bergen on 2021-05-03.", FACTS[1]))

    async def model_called() -> bool:
        return model.count("summary") == 1

    await wait_until(model_called, within_s=60, what="the call for the summary")
    assert await versions(client, "maya") == []
    stack.kill("worker-1")
    window = LedgerWindow(database_url(stack))
    # As if the time had passed after which a lost task is published again.
    passed = "UPDATE summary_states SET claimed_until = NULL, due_at = now()"
    await window.rows(f"{passed} RETURNING lane_id")
    await window.close()

    async def made() -> bool:
        return bool(await versions(client, "maya"))

    await wait_until(made, within_s=60, what="the summary")
    [version] = await versions(client, "maya")
    assert "2021-05-03" in version["summary"]
    await client.ended(await client.add("maya", FACTS[2]))
    prompt = [call.prompt for call in model.calls if call.kind == "extract"][-1]
    assert "2021-05-03" in prompt.split("## Summary\n")[1].split("## Earlier turns")[0]


async def _gathering(stack: Stack, client: Client, model: LLMServer) -> None:
    """Turns wait, a worker dies, and at their deadline they run together."""
    ping = (await client.http.get("/v1/ping/")).json()
    project = f"/api/v1/orgs/organizations/{ping['org_id']}/projects/{ping['project_id']}/"
    changed = await client.http.patch(project, json={"gather": {"seconds": 20}})
    assert changed.status_code == 200, changed.text
    before = model.count("extract")
    ids = [await client.add("noor", fact) for fact in FACTS]

    async def all_gather() -> bool:
        events = [await client.event(event_id) for event_id in ids]
        return all((event["waiting"] or {}).get("code") == "GATHERING" for event in events)

    await wait_until(all_gather, within_s=60, what="four waiting turns")
    assert {(await client.event(event_id))["status"] for event_id in ids} == {"PENDING"}
    stack.kill("worker-1")
    events = await client.all_ended(ids, within_s=120)
    assert {event["status"] for event in events} == {"SUCCEEDED"}
    assert model.count("extract") == before + 1
    assert len(await client.memories("noor")) == len(FACTS)
