"""Every scenario through a real stack: with a good model, out of order in time, with bad models.

    python -m tests.eval.scenarios                      all ways
    python -m tests.eval.scenarios good "out of order"  some
    python -m tests.eval.scenarios good --only maya     scenarios whose name has this text

Exit code 1 if a store is wrong with the good model or out of order, or a memory is harmed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.eval.scenarios.bad import GOOD
from tests.eval.scenarios.dialogues import Scenario, load
from tests.eval.scenarios.run import UNORDERED, WAYS, Way, run_way, server_for
from tests.eval.scenarios.server import settings
from tests.support.stack import Stack


async def run(ways: list[str], scenarios: list[Scenario]) -> list[Way]:
    async with server_for(scenarios) as server:
        with tempfile.TemporaryDirectory() as folder:
            more = {"MEMLANE_GRAPH": "off", "MEMLANE_WORKERS": "2"}
            stack = Stack(Path(folder) / "stack", {**settings(server), **more})
            await asyncio.to_thread(stack.up)
            try:
                async with stack.client() as client:
                    return [await run_way(w, scenarios, client, server, "eval") for w in ways]
            finally:
                await asyncio.to_thread(stack.down)


def problems(ways: list[Way]) -> list[str]:
    """A line for each wrong store and each harmed memory."""
    lines = []
    for way in ways:
        if way.name in (GOOD, UNORDERED):
            lines += [f"{way.name}: {name}: {d}" for name, d in way.differences.items()]
        lines += [f"{way.name}: {name}: harmed {facts}" for name, facts in way.harm.items()]
        if way.name in (GOOD, UNORDERED):
            lines += [
                f"{way.name}: {played.scenario.name}: failed: {event['error']}"
                for played in way.played
                for event in played.failed
            ]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], default=[])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    scenarios = [s for s in load() if given.only in s.name]
    ways = asyncio.run(run(given.ways or list(WAYS), scenarios))  # noqa: TID251
    for way in ways:
        print(json.dumps({way.name: way.figures() | {"prefix": way.prefix_tokens}}))
    lines = problems(ways)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
