"""Delays of live turns without and with an import in the same project, over HTTP.

    python -m tests.bench.backfill --turns 5000 --rounds 2
    python -m tests.bench.backfill --priority normal      the same import without low priority

A round measures live turns alone, then beside the accepted turns of an import. A delay is from
accept to end, by the ledger's clock; each turn has a user of its own. The stand-in provider and all
processes share the machine, so only the ratio is comparable. Goal: at most 1.1 at the 95th
percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import uvloop

from tests.bench.fairness import DELAYS, OPEN, at, percentiles_ms
from tests.bench.hosted import hosted, provider, sentence, stack
from tests.bench.load import LoadResult, add_request, post_request, send_all
from tests.support.chaos_ledger import LedgerWindow, database_url, holds
from tests.support.stack import Stack

LIMITS = {"MEMLANE_MAX_PROJECT_EVENTS": "1000000", "MEMLANE_MAX_LAG_S": "1e9"}
# Users of the import: turns of one user run in order, several in one batch.
USERS_OF = 0.5
CALLERS = 4


async def live(running: Stack, label: str, *, seconds: float, per_s: float) -> list[float]:
    """Delays in seconds of turns that are sent at a steady rate."""
    loop, sends = asyncio.get_running_loop(), []
    began, count = loop.time(), int(seconds * per_s)
    for turn in range(count):
        await asyncio.sleep(max(0.0, began + turn / per_s - loop.time()))
        sends.append(asyncio.create_task(send_turn(running, f"{label}-{turn}", sentence(turn))))
    assert not sum(run.failures for run in await asyncio.gather(*sends)), "adds were refused"
    ledger = LedgerWindow(database_url(running))

    async def ended() -> bool:
        return not (await ledger.rows(OPEN, f"{label}-"))[0][0]

    assert await holds(ended, within_s=900)
    delays = sorted(row[0] for row in await ledger.rows(DELAYS, f"{label}-"))
    await ledger.close()
    assert len(delays) == count
    return delays


async def send_turn(running: Stack, user: str, text: str) -> LoadResult:
    content = add_request(running.port, running.key, user=user, text=text)
    return await send_all(running.port, lambda _: content, callers=1, requests=1)


async def import_turns(running: Stack, label: str, *, turns: int, priority: str) -> None:
    """Add the turns over a few connections, as fast as the API accepts them."""
    users = max(1, int(turns * USERS_OF))

    def request(turn: int) -> bytes:
        body = {
            "messages": [{"role": "user", "content": sentence(turn)}],
            "user_id": f"{label}-{turn % users}",
            "priority": priority,
        }
        return post_request(running.port, running.key, "/v3/memories/add/", body)

    run = await send_all(running.port, request, callers=CALLERS, requests=turns)
    assert not run.failures, f"{run.failures} adds were refused"


async def open_turns(running: Stack, label: str) -> int:
    ledger = LedgerWindow(database_url(running))
    [[count]] = await ledger.rows(OPEN, label)
    await ledger.close()
    return int(count)


async def drained(running: Stack, label: str) -> None:
    async def ended() -> bool:
        return not await open_turns(running, label)

    assert await holds(ended, within_s=3_600)


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.backfill")
    parser.add_argument("--turns", type=int, default=5_000, help="of each import")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each measurement")
    parser.add_argument("--per-s", type=float, default=4.0, help="live turns")
    parser.add_argument("--model-ms", type=float, default=500.0)
    parser.add_argument(
        "--burst", action="store_true", help="measure the accepts of the import too"
    )
    parser.add_argument("--priority", choices=["low", "normal"], default="low")
    given = parser.parse_args()
    alone: list[float] = []
    beside: list[float] = []
    still_open: list[int] = []
    with (
        provider(latency_ms=given.model_ms) as base_url,
        stack(hosted(base_url, **LIMITS)) as running,
    ):
        measured: dict[str, Any] = {"seconds": given.seconds, "per_s": given.per_s}
        await live(running, "warm", seconds=10, per_s=given.per_s)
        for number in range(given.rounds):
            alone += await live(running, f"alone{number}", **measured)
            label = f"import{number}"
            importing = asyncio.create_task(
                import_turns(running, label, turns=given.turns, priority=given.priority)
            )
            if not given.burst:
                await importing
            beside += await live(running, f"beside{number}", **measured)
            await importing
            still_open.append(await open_turns(running, label))
            if number + 1 < given.rounds:
                await drained(running, label)
    alone.sort()
    beside.sort()
    figures = {
        "alone_ms": percentiles_ms(alone),
        "beside_ms": percentiles_ms(beside),
        "p95_ratio": round(at(beside, 0.95) / at(alone, 0.95), 2),
        # Must be above zero: otherwise an import ended before the last live turn.
        "import_still_open": still_open,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    uvloop.run(main())
