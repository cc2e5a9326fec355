"""An event that kills every worker that runs it fails alone; all other events succeed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_server import LLMCall, LLMReply, LLMServer
from tests.support.stack import Stack, wait_until

INNOCENTS = 30
THINKS_S = 1.5
WITHIN_S = 480.0
CRASHES = 8


class Deadly(LLMServer):
    """Model server that delays each answer; a prompt with POISON kills its worker at once."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: Stack | None = None
        self.killed: list[int] = []

    async def _chat(self, body: Any, call: LLMCall) -> LLMReply:
        if "POISON" in call.prompt:
            self.kill()
            await asyncio.Event().wait()  # the worker is dead: no client reads the answer
        await asyncio.sleep(THINKS_S)
        return await super()._chat(body, call)

    def kill(self) -> None:
        assert self.stack is not None
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            self.killed.append(self.stack.kill("worker-1"))


def settings(model: LLMServer) -> dict[str, str]:
    return {
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": model.base_url,
        "MEMLANE_LLM__API_KEY": "sk-test",
    }


@dataclass(frozen=True)
class Outcome:
    """Events at their end, and the number of times that a prompt killed the worker."""

    events: list[dict[str, Any]]
    kills: int = 0


async def run_poison(data_dir: Path) -> Outcome:
    """Innocent events beside one that kills its worker; the poison is the last event."""
    async with Deadly() as model, Stack(data_dir, settings(model)) as stack:
        model.stack = stack
        async with stack.client() as client:
            await client.ended(await client.add("warm", "I like tea."))
            ids = [await client.add(f"innocent-{n}", "I live in Berlin.") for n in range(INNOCENTS)]
            poison = await client.add("poisoner", "I like POISON.")
            events = await client.all_ended([*ids, poison], within_s=WITHIN_S)
    return Outcome(events, len(model.killed))


async def run_crash_loop(data_dir: Path) -> Outcome:
    """Workers die more often than one event may kill them, each soon after it begins to work."""
    async with (
        LLMServer(latency_ms=THINKS_S * 1000) as model,
        Stack(data_dir, settings(model)) as stack,
        stack.client() as client,
    ):
        ids = [await client.add(f"user-{n}", "I live in Berlin.") for n in range(5)]
        for _ in range(CRASHES):
            calls = len(model.calls)

            async def asks(calls: int = calls) -> bool:
                return len(model.calls) > calls

            # no more calls: all events have ended
            with contextlib.suppress(AssertionError):
                await wait_until(asks, within_s=30, what="a worker that calls the model")
            pid = stack.pids().get("worker-1")
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
        return Outcome(await client.all_ended(ids, within_s=WITHIN_S))


@pytest.fixture(scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Outcome]:
    """Both runs at the same time: they wait most of it for workers to be restarted."""
    folder = tmp_path_factory.mktemp("poison")
    return await asyncio.gather(run_poison(folder / "poison"), run_crash_loop(folder / "loop"))


async def test_a_poison_fails_alone(outcomes: tuple[Outcome, Outcome]) -> None:
    *innocents, killer = outcomes[0].events
    assert {(event["status"], event["error"]) for event in innocents} == {("SUCCEEDED", None)}
    assert killer["status"] == "FAILED"
    assert killer["code"] == "POISON_CRASH"
    assert outcomes[0].kills == 7  # twice in a batch with others, then five times alone


async def test_workers_that_die_in_a_loop_of_something_else_fail_no_event(
    outcomes: tuple[Outcome, Outcome],
) -> None:
    assert {event["status"] for event in outcomes[1].events} == {"SUCCEEDED"}
