"""Graceful stop of one or all workers: no lane waits for its lease to expire."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from celery import Celery

from tests.support.chaos_ledger import LedgerWindow, broker_url, database_url, holds
from tests.support.llm_server import LLMServer
from tests.support.stack import Client, Stack, wait_until

# A stage of a busy machine ends within STOP_S, and a process within EXIT_S of its last stage.
WORKERS, STAGES, STOP_S, EXIT_S = 3, 8, 6.0, 20.0
ADDS, SCOPES = 150, 50


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[LLMServer]:
    async with LLMServer() as server:
        yield server


@pytest.fixture(scope="module")
async def stack(model: LLMServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    settings = {
        "MEMLANE_WORKERS": str(WORKERS),
        "MEMLANE_WORKER_CONCURRENCY": str(STAGES),
        "MEMLANE_STOP_S": str(STOP_S),
        "MEMLANE_LEASE_S": "600",
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": model.base_url,
        "MEMLANE_LLM__API_KEY": "sk-test",
    }
    stack = Stack(tmp_path_factory.mktemp("stop"), settings)
    await asyncio.to_thread(stack.up)
    yield stack
    await asyncio.to_thread(stack.down)


@pytest.fixture
async def client(stack: Stack, model: LLMServer) -> AsyncIterator[Client]:
    model.rules.clear()
    async with stack.client() as made:
        yield made


async def test_workers_that_stop_finish_their_stages_and_hand_on(
    stack: Stack, client: Client, model: LLMServer
) -> None:
    """The leases last ten minutes, so a lane that was not handed back would not finish in time."""
    model.on("any", "delay", ms=1_000)
    calls = model.count("extract")
    ids = [await client.add(f"busy-{n}", "I like tea.") for n in range(2 * WORKERS * STAGES)]

    async def all_busy() -> bool:
        return model.count("extract") >= calls + WORKERS * STAGES

    await wait_until(all_busy, within_s=60, what="every stage at the model")
    await asyncio.gather(*(replaced(stack, f"worker-{n + 1}") for n in range(WORKERS)))
    events = await client.all_ended(ids, within_s=120)
    assert {event["status"] for event in events} == {"SUCCEEDED"}
    assert model.count("extract") == calls + len(ids)  # no model call was repeated
    assert swept(stack)["RUNNING"] == 0


async def test_a_stage_that_hangs_is_handed_back_before_its_worker_goes(
    stack: Stack, client: Client, model: LLMServer
) -> None:
    model.on("extract", "hang", times=1)
    calls = model.count("extract")
    event_id = await client.add("hanging", "I like tea.")

    async def model_called() -> bool:
        return model.count("extract") > calls

    await wait_until(model_called, within_s=60, what="a hanging call has begun")
    before = logged(stack, "lane_handed_back")
    took_s = await asyncio.gather(*(replaced(stack, f"worker-{n + 1}") for n in range(WORKERS)))
    assert max(took_s) < STOP_S + EXIT_S
    event = await client.ended(event_id, within_s=120)
    assert event["status"] == "SUCCEEDED"
    # One more for each other stopping worker that takes the stage in between.
    assert 1 <= logged(stack, "lane_handed_back") - before <= WORKERS
    assert swept(stack)["RUNNING"] == 0


async def test_workers_replaced_one_by_one_under_load_lose_and_double_nothing(
    stack: Stack, client: Client, model: LLMServer
) -> None:
    model.on("any", "delay", ms=50)
    ids: list[str] = []

    async def talk() -> None:
        for n in range(ADDS):
            ids.append(await client.add(f"roll-{n % SCOPES}", f"I like tea number {n}."))
            await asyncio.sleep(0.02)

    talking = asyncio.create_task(talk())
    for n in range(WORKERS):
        await replaced(stack, f"worker-{n + 1}")
    await talking
    events = await client.all_ended(ids, within_s=120)
    assert Counter(event["status"] for event in events) == {"SUCCEEDED": ADDS}
    stored = [m["memory"] for n in range(SCOPES) for m in await client.memories(f"roll-{n}")]
    assert sorted(stored) == sorted(row["memory"] for event in events for row in event["results"])
    assert len(set(stored)) == ADDS
    assert swept(stack)["RUNNING"] == 0


async def test_messages_of_the_last_release_are_done_and_of_the_next_are_dropped_and_healed(
    stack: Stack, client: Client
) -> None:
    """Task names and arguments are spelt out here: changing them breaks rolling updates."""
    before = stack.pids()
    window = LedgerWindow(database_url(stack))
    broker = Celery(broker=broker_url(stack))
    for n in range(WORKERS):
        stack.kill(f"worker-{n + 1}", signal.SIGSTOP)
    ids = [await client.add(f"release-{n}", "I like tea.") for n in range(3)]
    await asyncio.to_thread(empty, broker)
    lanes = await window.rows(
        "SELECT id, fence FROM lanes WHERE user_id LIKE 'release-%' ORDER BY user_id"
    )
    (old, fence), (renamed, _), (reshaped, _) = [(str(row["id"]), row["fence"]) for row in lanes]
    publish(broker, "memlane.extract", old, fence)
    publish(broker, "memlane.summarise", renamed, fence)
    publish(broker, "memlane.extract", {"lane": reshaped, "fence": fence, "tier": 2})
    for n in range(WORKERS):
        stack.kill(f"worker-{n + 1}", signal.SIGCONT)
    events = await client.all_ended(ids, within_s=120)
    assert {event["status"] for event in events} == {"SUCCEEDED"}

    async def both_dropped() -> bool:
        return logged(stack, "hint_dropped") >= 2

    # The events may end by hints that a stopped worker received before the queue was emptied.
    await wait_until(both_dropped, within_s=30, what="both unknown messages are dropped")
    assert logged(stack, "hint_dropped") == 2
    assert stack.pids() == before  # no process died
    await window.close()


def empty(broker: Celery) -> None:
    with broker.connection_for_write() as connection:
        connection.default_channel.queue_purge("mem.lane")


def publish(broker: Celery, name: str, *arguments: object) -> None:
    broker.send_task(name, args=arguments, queue="mem.lane")


async def replaced(stack: Stack, worker: str) -> float:
    """Stop a worker and wait for its replacement; return the seconds until the process ended."""
    ready = stack.data_dir / "run" / f"{worker}.ready"
    ready.unlink()
    loop = asyncio.get_running_loop()
    began, pid = loop.time(), stack.kill(worker, signal.SIGTERM)

    async def gone() -> bool:
        return not Path(f"/proc/{pid}").exists()

    assert await holds(gone, within_s=60)
    took_s = loop.time() - began

    async def another() -> bool:
        return ready.exists()

    assert await holds(another, within_s=120)
    return took_s


def swept(stack: Stack) -> Counter[str]:
    """Number of lanes that the sweeper has taken over, by state."""
    log = (stack.data_dir / "logs" / "sweeper.log").read_text()
    return Counter(re.findall(r'"was": "(\w+)"', log))


def logged(stack: Stack, event: str) -> int:
    """Number of lines with this event in the logs of all workers."""
    logs = (stack.data_dir / "logs").glob("worker-*.log")
    return sum(log.read_text().count(f'"event": "{event}"') for log in logs)
