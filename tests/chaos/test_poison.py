"""An event that kills every worker that runs it fails alone; all other events succeed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_server import LLMCall, LLMReply, LLMServer
from tests.support.stack import Stack, wait_until

INNOCENTS = 30
THINKS_S = 1.5
WITHIN_S = 240.0
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


@pytest.mark.timeout(420)
async def test_a_poison_fails_alone(tmp_path: Path) -> None:
    async with Deadly() as model:
        with Stack(tmp_path / "stack", settings(model)) as stack:
            model.stack = stack
            async with stack.client() as client:
                await client.ended(await client.add("warm", "I like tea."))
                ids = [
                    await client.add(f"innocent-{n}", "I live in Berlin.") for n in range(INNOCENTS)
                ]
                poison = await client.add("poisoner", "I like POISON.")
                events = await client.all_ended([*ids, poison], within_s=WITHIN_S)
    *innocents, killer = events
    assert {(event["status"], event["error"]) for event in innocents} == {("SUCCEEDED", None)}
    assert killer["status"] == "FAILED"
    assert killer["code"] == "POISON_CRASH"
    assert len(model.killed) == 7  # twice in a batch with others, then five times alone


@pytest.mark.timeout(420)
async def test_workers_that_die_in_a_loop_of_something_else_fail_no_event(tmp_path: Path) -> None:
    """Workers die more often than one event may kill them, each soon after it begins to work."""
    async with LLMServer(latency_ms=THINKS_S * 1000) as model:
        with Stack(tmp_path / "stack", settings(model)) as stack:
            async with stack.client() as client:
                ids = [await client.add(f"user-{n}", "I live in Berlin.") for n in range(5)]
                for _ in range(CRASHES):
                    calls = len(model.calls)

                    async def asks(calls: int = calls) -> bool:
                        return len(model.calls) > calls

                    # no more calls: all events have ended
                    with contextlib.suppress(AssertionError):
                        await wait_until(asks, within_s=30, what="a worker at work")
                    pid = stack.pids().get("worker-1")
                    if pid is not None:
                        os.kill(pid, signal.SIGKILL)
                events = await client.all_ended(ids, within_s=WITHIN_S)
    assert {event["status"] for event in events} == {"SUCCEEDED"}
