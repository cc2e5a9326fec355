"""Six hours without a model: 2,000 events wait, the provider gets few calls, adds stay fast.

The hours are simulated: times in the database are changed while the stack keeps running.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.load import closed_loop
from tests.bench.remote import BenchModel, remote_model
from tests.support.chaos_ledger import LedgerWindow, database_url, holds
from tests.support.stack import Stack

EVENTS, SCOPES, CALLERS = 2_000, 250, 2
# A step is as long as the longest wait, so every lane becomes due in each step.
HOURS, STEP_S = 6, 900
SAMPLE = 400

SHIFTS = (
    f"UPDATE lanes SET due_at = due_at - interval '{STEP_S} s' WHERE due_at IS NOT NULL",
    f"UPDATE events SET created_at = created_at - interval '{STEP_S} s' WHERE completed_at IS NULL",
    f"UPDATE cooldowns SET probe_at = probe_at - interval '{STEP_S} s'",
)
BUSY = "SELECT count(*) FROM lanes WHERE state IN ('QUEUED', 'RUNNING') OR due_at < now()"
PARKED = """
    SELECT count(*) AS lanes, sum(accepted_seq - settled_seq)::integer AS events,
           max(attempts) AS attempts_spent
    FROM lanes WHERE state = 'WAITING'
"""
ENDED = "SELECT status, count(*) AS events FROM events GROUP BY 1"


@dataclass(slots=True)
class Probes:
    """Calls to a provider that is down; retries within a call are counted as requests only.

    Each call is (seconds on the ledger's clock, prompt); each lane has its own prompt.
    """

    calls: list[tuple[float, str]] = field(default_factory=list)

    def saw(self, calls: Sequence[Mapping[str, Any]], *, moved_s: float) -> None:
        self.calls += [(call["at_s"] + moved_s, call["prompt"]) for call in calls]

    def in_the_worst_second(self) -> int:
        window: deque[tuple[float, str]] = deque()
        most = 0
        for call in self.calls:
            window.append(call)
            while call[0] - window[0][0] > 1:
                window.popleft()
            most = max(most, len({prompt for _, prompt in window}))
        return most

    def summary(self) -> dict[str, int]:
        return {
            "requests": len(self.calls),
            "lanes": len({prompt for _, prompt in self.calls}),
            "lanes_in_the_worst_second": self.in_the_worst_second(),
        }


@dataclass(slots=True)
class Outage:
    """State of one run: the stack, its model, and the measurements."""

    stack: Stack
    model: BenchModel
    window: LedgerWindow
    accepts: dict[str, dict[str, float]] = field(default_factory=dict)
    moved_s: float = 0.0

    async def sample(self, when: str) -> None:
        """Measure the latency of a fixed number of adds to new scopes."""
        self.accepts[when] = await self.add(when, SAMPLE)

    async def add(self, label: str, requests: int) -> dict[str, float]:
        port, key = self.stack.port, self.stack.key
        return (
            await closed_loop(
                port, key, callers=CALLERS, requests=requests, label=label, users=SCOPES
            )
        ).summary()

    async def quiet(self) -> None:
        """Return when every lane is idle or parked, and no parked lane is due."""

        async def none_busy() -> bool:
            return int((await self.window.rows(BUSY))[0][0]) == 0

        assert await holds(none_busy, within_s=300), "lanes stay busy"

    async def pass_hours(self, hours: float, seen: Probes) -> None:
        until_s = self.moved_s + hours * 3600
        while self.moved_s < until_s:
            for shift in SHIFTS:
                await self.window.rows(shift)
            self.moved_s += STEP_S
            await self.quiet()
            seen.saw(await self.model.take_calls(), moved_s=self.moved_s)

    async def all_done(self, *, within_s: float) -> bool:
        async def succeeded() -> bool:
            return {row["status"] for row in await self.window.rows(ENDED)} == {"SUCCEEDED"}

        return await holds(succeeded, within_s=within_s)


async def measure(run: Outage) -> dict[str, Any]:
    await run.sample("before")
    await run.quiet()
    await run.model.misbehave(on="any", do="500")
    await run.model.take_calls()
    await run.sample("model_goes_down")
    await run.add("waiting", EVENTS - SAMPLE)
    await run.quiet()
    first, later = Probes(), Probes()
    first.saw(await run.model.take_calls(), moved_s=0)
    await run.pass_hours(HOURS / 2, later)
    await run.sample("down_for_3_hours")
    await run.quiet()
    await run.pass_hours(HOURS / 2, later)
    [parked] = await run.window.rows(PARKED)
    await run.sample("down_for_6_hours")
    await run.quiet()
    await run.model.behave()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await run.sample("resuming")
    finished = await run.all_done(within_s=600)
    resumed_s = loop.time() - began
    await run.sample("after")
    await run.all_done(within_s=120)
    async with run.stack.client() as client:
        books = (await client.http.get("/v1/stats/")).json()
    return {
        "accepts": run.accepts,
        "until_known_to_be_down": first.summary(),
        "while_down": {"hours": HOURS, **later.summary()},
        "parked": dict(parked),
        "all_succeeded": finished,
        "resumed_in_s": round(resumed_s, 1),
        "books": books,
    }


async def outage(data_dir: Path) -> dict[str, Any]:
    async with remote_model() as model:
        stack = Stack(data_dir, model.settings)
        await asyncio.to_thread(stack.up)
        window = LedgerWindow(database_url(stack))
        try:
            return await measure(Outage(stack, model, window))
        finally:
            await window.close()
            await asyncio.to_thread(stack.down)
