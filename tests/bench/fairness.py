"""Fairness: delays of light events beside a noisy scope and beside a noisy tenant.

A delay is from accept to end, by the ledger's clock. Each is measured alone and beside the noise in
one run, so that the ratio is comparable between machines.

    python -m tests.bench.fairness --scopes 5000 --model-ms 500
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from pipeline.ledger.engine import connect
from pipeline.tenants.projects import Projects
from tests.bench.engine import pause
from tests.bench.load import closed_loop
from tests.support.chaos_ledger import LedgerWindow, database_url, holds
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack

# Much slower than one worker, so that light events do not wait for each other.
LIGHT_EVERY_S = 0.1
SETTINGS = {
    "MEMLANE_MAX_SCOPE_EVENTS": "100000",
    "MEMLANE_MAX_PROJECT_EVENTS": "1000000",
    "MEMLANE_MAX_LAG_S": "1e9",
}
DELAYS = """
    SELECT extract(epoch FROM e.completed_at - e.created_at)::float8
    FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE starts_with(l.user_id, $1) AND e.completed_at IS NOT NULL
"""
OPEN = """
    SELECT count(*) FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE starts_with(l.user_id, $1) AND e.completed_at IS NULL
"""


async def noisy_scope(stack: Stack, *, events: int, scopes: int) -> dict[str, Any]:
    """Queue `events` in one scope, then one event in each of `scopes` others."""
    key = stack.key
    alone = await light(stack, key, label="light-alone", count=scopes)
    await queue_up(stack, key, label="noise", events=events, users=1)
    beside = await light(stack, key, label="light-beside", count=scopes)
    return await figures(stack, "noise", alone, beside)


async def noisy_tenant(stack: Stack, *, scopes: int, adds: int) -> dict[str, Any]:
    """Queue one event in each of a tenant's `scopes`, then single adds of another tenant."""
    other = await second_key(stack)
    alone = await light(stack, other, label="few-alone", count=adds, at_a_time=1)
    await queue_up(stack, stack.key, label="crowd", events=scopes, users=scopes)
    beside = await light(stack, other, label="few-beside", count=adds, at_a_time=1)
    return await figures(stack, "crowd", alone, beside)


async def second_key(stack: Stack) -> str:
    engine = connect(database_url(stack), pool_size=1)
    _, key = await Projects(engine).create("beside")
    await engine.dispose()
    return key


async def queue_up(stack: Stack, key: str, *, label: str, events: int, users: int) -> None:
    """Accept the events while the workers are paused, then resume the workers."""
    await pause(stack, True)
    run = await closed_loop(stack.port, key, callers=8, requests=events, label=label, users=users)
    assert not run.failures, f"{run.failures} adds were refused"
    await pause(stack, False)


async def light(
    stack: Stack, key: str, *, label: str, count: int, at_a_time: int | None = None
) -> list[float]:
    """Send one add for each of `count` users at a steady rate; return their delays in seconds.

    At most `at_a_time` events are open; the next add waits for the ones before it.
    """
    ledger = LedgerWindow(database_url(stack))

    async def open_events() -> int:
        return int((await ledger.rows(OPEN, label))[0][0])

    async def at_most(events: int) -> None:
        async def few() -> bool:
            return await open_events() <= events

        assert await holds(few, within_s=600)

    for turn in range(count):
        await closed_loop(stack.port, key, callers=1, requests=1, label=f"{label}-{turn}")
        await asyncio.sleep(LIGHT_EVERY_S)
        if at_a_time is not None:
            await at_most(at_a_time - 1)
    await at_most(0)
    delays = sorted(row[0] for row in await ledger.rows(DELAYS, label))
    await ledger.close()
    return delays


async def figures(
    stack: Stack, noise: str, alone: list[float], beside: list[float]
) -> dict[str, Any]:
    ledger = LedgerWindow(database_url(stack))
    still_open = (await ledger.rows(OPEN, noise))[0][0]
    await ledger.close()
    return {
        "alone_ms": percentiles_ms(alone),
        "beside_ms": percentiles_ms(beside),
        "p95_ratio": round(at(beside, 0.95) / at(alone, 0.95), 2),
        # Must be above zero: otherwise the noise ended before the last light event.
        "noise_still_open": still_open,
    }


def percentiles_ms(delays: list[float]) -> dict[str, int]:
    return {f"p{round(100 * p)}": round(1000 * at(delays, p)) for p in (0.5, 0.95, 1.0)}


def at(ordered: list[float], p: float) -> float:
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]


async def fairness(
    *, events: int, scopes: int, settings: Mapping[str, str] | None = None
) -> dict[str, Any]:
    figures = {}
    with fresh_stack(settings or {}) as stack:
        await light(stack, stack.key, label="warm", count=50)
        figures["noisy_scope"] = await noisy_scope(stack, events=events, scopes=200)
    with fresh_stack(settings or {}) as stack:
        await light(stack, stack.key, label="warm", count=50)
        figures["noisy_tenant"] = await noisy_tenant(stack, scopes=scopes, adds=60)
    return figures


@contextmanager
def fresh_stack(settings: Mapping[str, str]) -> Iterator[Stack]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Stack(Path(folder) / "stack", SETTINGS | dict(settings)) as stack,
    ):
        yield stack


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fairness")
    parser.add_argument("--events", type=int, default=2_000, help="of the noisy scope")
    parser.add_argument("--scopes", type=int, default=5_000, help="of the noisy tenant")
    parser.add_argument("--model-ms", type=float, help="a model this slow; without: local/rules")
    given = parser.parse_args()
    async with LLMServer(latency_ms=given.model_ms or 0) as server:
        model = {
            "MEMLANE_LLM__MODEL": "openai/stand-in",
            "MEMLANE_LLM__API_BASE": server.base_url,
            "MEMLANE_LLM__API_KEY": "sk-bench",
        }
        settings = model if given.model_ms else {}
        figures = await fairness(events=given.events, scopes=given.scopes, settings=settings)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    uvloop.run(main())
