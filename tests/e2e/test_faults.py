"""Process kills and outages: no accepted event is lost, and no memory is stored twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deploy.stack.servers import Redis
from tests.support.chaos_ledger import LedgerWindow, database_url
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack, wait_until


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[LLMServer]:
    async with LLMServer() as server:
        yield server


@pytest.fixture(scope="module")
async def stack(model: LLMServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack for all tests that leave it as they found it, with a model and two API processes."""
    settings = {
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": model.base_url,
        "MEMLANE_LLM__API_KEY": "sk-test",
        "MEMLANE_API_PROCESSES": "2",
    }
    async with Stack(tmp_path_factory.mktemp("faults") / "stack", settings) as running:
        yield running


async def test_a_worker_killed_in_the_middle_of_events_costs_seconds_and_nothing_else(
    stack: Stack, model: LLMServer
) -> None:
    users = [f"kill-{n}" for n in range(10)]
    facts = ["I live in Bergen.", "I own a boat.", "I like rye bread.", "I play the tuba."]
    # Every lane has an open model call when the worker dies.
    model.on("extract", "hold", times=len(users))
    calls = model.count("extract")
    async with stack.client() as client:
        ids = [await client.add(user, text) for text in facts for user in users]

        async def all_ask() -> bool:
            return model.count("extract") == calls + len(users)

        await wait_until(all_ask, within_s=60, what="a model call for each user")
        assert await held_by_sessions(stack) == len(users)
        killed = stack.kill("worker-1")
        model.release()
        events = await client.all_ended(ids, within_s=120)
        assert {event["status"] for event in events} == {"SUCCEEDED"}
        for user in users:
            texts = [memory["memory"] for memory in await client.memories(user)]
            assert sorted(texts) == sorted(set(texts))
            assert len(texts) == len(facts)

        async def restarted() -> bool:
            return stack.pids().get("worker-1", killed) != killed

        await wait_until(restarted, within_s=30, what="a new worker")


async def held_by_sessions(stack: Stack) -> int:
    """Running lanes whose worker has an open session, which lets the ledger notice its death."""
    window = LedgerWindow(database_url(stack))
    rows = await window.rows(
        "SELECT count(*) FROM lanes WHERE state = 'RUNNING' AND EXISTS ("
        " SELECT FROM pg_stat_activity"
        " WHERE application_name LIKE 'memlane ' || owner || ' worker-%')"
    )
    await window.close()
    return int(rows[0][0])


async def test_api_processes_share_one_port_and_one_goes_on_alone(stack: Stack) -> None:
    async def accepted(user: str) -> None:
        async with stack.client() as client:  # a new connection
            await client.ended(await client.add(user, "I like tea."))

    for n in range(10):
        await accepted(f"both-{n}")
    killed = stack.kill("api")

    async def reaped() -> bool:  # until then its last threads may hold the listening socket
        return not Path(f"/proc/{killed}").exists()

    await wait_until(reaped, within_s=60, what="the end of the first process")
    for n in range(10):
        await accepted(f"one-{n}")

    async def restarted() -> bool:
        return stack.pids().get("api", killed) != killed

    await wait_until(restarted, within_s=30, what="a new API process")


async def test_adds_are_accepted_without_a_broker_and_done_once_it_is_back(
    tmp_path: Path,
) -> None:
    with Redis(tmp_path / "broker") as broker:
        settings = {"MEMLANE_BROKER_URL": broker.url}
        with Stack(tmp_path / "stack", settings) as stack:
            async with stack.client() as client:
                await client.ended(await client.add("before", "I like tea."))
                broker.stop()
                ids = [await client.add(f"without-{n}", "I like tea.") for n in range(5)]
                assert {(await client.event(i))["status"] for i in ids} == {"PENDING"}
                broker.start()
                events = await client.all_ended(ids, within_s=120)
                assert {event["status"] for event in events} == {"SUCCEEDED"}


async def test_down_leaves_no_process_and_up_finds_everything_again(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "stack")
    with stack:
        async with stack.client() as client:
            await client.ended(await client.add("maya", "I live in Berlin."))
        pids = stack.pids()
    assert set(pids) >= {"api", "worker-1", "sweeper", "postgres", "redis", "chroma"}
    assert not [name for name, pid in pids.items() if runs(pid)]
    with stack:
        async with stack.client() as client:
            [memory] = await client.memories("maya")
            assert (await client.search("maya", "Berlin"))["results"][0]["id"] == memory["id"]


async def test_a_remote_model_answers_and_the_receipt_tells_what_it_cost(
    stack: Stack, model: LLMServer
) -> None:
    async with stack.client() as client:
        first = await client.ended(await client.add("maya", "I live in Berlin."))
        assert first["status"] == "SUCCEEDED", first
        # extract and relate; there is no memory to compare with yet
        assert first["usage"]["calls"] == 2
        moved = await client.ended(await client.add("maya", "I moved to Munich."))
        assert [row["event"] for row in moved["results"]] == ["UPDATE"]
        usage = moved["usage"]
        assert usage["models"] == ["openai/stand-in"]
        assert usage["calls"] == 3
        assert usage["prompt_tokens"] > usage["completion_tokens"] > 0
        assert all(stage["ms"] > 0 for stage in moved["stages"])

        model.on("extract", "429", times=1, retry_after_s=0)
        model.on("decide", "malformed", times=1)
        mended = await client.ended(await client.add("maya", "I moved to Oslo."))
        assert mended["status"] == "SUCCEEDED"
        assert mended["usage"]["calls"] == 4  # one call is a repair; the refused call is free

        model.on("extract", "malformed", times=2)
        failed = await client.ended(await client.add("maya", "I like opera."))
        assert (failed["status"], failed["code"]) == ("FAILED", "LLM_BAD_OUTPUT")
        assert failed["error"]


def runs(pid: int) -> bool:
    """Tell if a process with this pid runs; a zombie does not."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
