"""All scenarios through one real stack, in every way: figures of each."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

from tests.eval import models
from tests.eval.scenarios.bad import BAD, GOOD, dates_ignored
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.oracle import Oracle
from tests.eval.scenarios.play import Played, converse, fill, other_memories, play, shuffled
from tests.eval.scenarios.server import ScenarioServer
from tests.eval.scenarios.verdict import Difference, difference, harmed, kept, rows, stale
from tests.eval.tokens import tokens
from tests.support.stack import Client, Stack

T = TypeVar("T")
UNORDERED = "out of order"
AT_ONCE = 24
# Some scenarios, each of a user who has other memories already.
AMONG_MANY, EVERY, OTHERS = "among 190 memories", 8, 190
# The same after a long conversation: each extraction has its summary and its last messages.
SUMMARIZED = "among 190 memories, summarized"
WAYS = (GOOD, UNORDERED, AMONG_MANY, SUMMARIZED, *BAD)
# Ways of a live model.
LIVE = (GOOD, UNORDERED)
# Ways that shuffle the turns, and ways after which every store must be right.
SHUFFLED = (UNORDERED, dates_ignored.__name__)
RIGHT = (GOOD, AMONG_MANY, SUMMARIZED, *SHUFFLED)


@dataclass(frozen=True)
class Way:
    """All scenarios in one way. `differences` and `harm` name the scenarios that are not right."""

    name: str
    played: Sequence[Played]
    differences: Mapping[str, Difference]
    harm: Mapping[str, list[str]]
    seconds: float
    prefix_tokens: Mapping[str, int]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for played in self.played for event in played.events]

    def figures(self) -> dict[str, Any]:
        """The figures of a row of the table."""
        outcomes = [row["event"] for played in self.played for row in rows(played)]
        usage = [event["usage"] for event in self.events]
        many = [p.scenario.name for p in self.played if p.scenario.has_many_targets]
        return {
            "scenarios": len(self.played),
            "right": len(self.played) - len(self.differences),
            "many_targets": len(many),
            "many_targets_right": len(set(many) - set(self.differences)),
            "expected": sum(len(played.scenario.final) for played in self.played),
            "kept": sum(map(kept, self.played)),
            "stale": sum(map(stale, self.played)),
            "harmed": sum(map(len, self.harm.values())),
            "adds": len(self.events),
            "failed": sum(len(played.failed) for played in self.played),
            "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
            "calls_per_add": round(mean(u["calls"] for u in usage), 2),
            "prompt_tokens_per_add": round(mean(u["prompt_tokens"] for u in usage)),
            "prompt_tokens_most": max(u["prompt_tokens"] for u in usage),
            "completion_tokens_per_add": round(mean(u["completion_tokens"] for u in usage)),
            "prefix_tokens": dict(self.prefix_tokens),
            "seconds": round(self.seconds, 1),
        }


async def run(
    scenarios: Sequence[Scenario], ways: Sequence[str] = WAYS, model: str | None = None
) -> list[Way]:
    """Play the scenarios in these ways, with a live model or with the stand-in."""

    async def all_ways(client: Client, oracle: Oracle, server: ScenarioServer | None) -> list[Way]:
        return [await run_way(way, scenarios, client, oracle, server) for way in ways]

    if model is not None:
        oracle = Oracle(scenarios)
        return await with_stack(models.live(model), lambda client: all_ways(client, oracle, None))
    async with ScenarioServer(scenarios) as server:
        oracle = server.answers.oracle
        settings = models.stand_in(server)
        return await with_stack(settings, lambda client: all_ways(client, oracle, server))


async def with_stack(
    settings: Mapping[str, str], work: Callable[[Client], Awaitable[T]], *, graph: str = "off"
) -> T:
    """Run the work with a client of a new stack of two workers; by default without a graph."""
    with tempfile.TemporaryDirectory() as folder:
        more = {"MEMLANE_GRAPH": graph, "MEMLANE_WORKERS": "2"}
        stack = Stack(Path(folder) / "stack", {**settings, **more})
        await asyncio.to_thread(stack.up)
        try:
            async with stack.client() as client:
                return await work(client)
        finally:
            await asyncio.to_thread(stack.down)


async def run_way(
    name: str,
    scenarios: Sequence[Scenario],
    client: Client,
    oracle: Oracle,
    server: ScenarioServer | None = None,
) -> Way:
    """Play all scenarios, each as a user of its own, AT_ONCE of them at a time."""
    if server is not None:
        server.answers.behaviour = name if name in BAD else GOOD
        server.calls.clear()
    began = time.perf_counter()

    places = asyncio.Semaphore(AT_ONCE)

    async def played(scenario: Scenario) -> Played:
        turns = shuffled(scenario) if name in SHUFFLED else scenario.turns
        user = f"{name}: {scenario.name}"
        async with places:
            if name in (AMONG_MANY, SUMMARIZED):
                await fill(client, user, other_memories(scenario.language, OTHERS))
            if name == SUMMARIZED:
                await converse(client, user)
            return await play(client, scenario, user, turns)

    some = scenarios[::EVERY] if name in (AMONG_MANY, SUMMARIZED) else scenarios
    results = await asyncio.gather(*map(played, some))
    return Way(
        name,
        results,
        differences={p.scenario.name: d for p in results if (d := difference(p))},
        harm={p.scenario.name: names for p in results if (names := harmed(p, oracle))},
        seconds=time.perf_counter() - began,
        prefix_tokens=_prefixes(server) if server else {},
    )


def _prefixes(server: ScenarioServer) -> dict[str, int]:
    """Tokens that all prompts of a kind begin with, byte by byte."""
    figures = {}
    for kind in ("extract", "decide"):
        prompts = [call.prompt for call in server.calls if call.kind == kind and not call.repair]
        figures[kind] = tokens(_common_prefix(prompts)) if prompts else 0
    return figures


def _common_prefix(prompts: Sequence[str]) -> str:
    """The characters that all prompts begin with: those that the first and the last in order do."""
    first, last = min(prompts), max(prompts)
    pairs = zip(first, last, strict=False)
    length = next((n for n, (a, b) in enumerate(pairs) if a != b), len(first))
    return first[:length]


def unequal_stores(ways: Sequence[Way]) -> list[str]:
    """Lines for final stores that are not those of the good way, early take-backs apart."""
    by_name = {way.name: {p.scenario.name: standing(p) for p in way.played} for way in ways}
    return [
        f"{way}: {name}: not the store of the turns in order"
        for way in SHUFFLED
        for name, store in by_name.get(way, {}).items()
        if store != by_name.get(GOOD, by_name[way])[name]
    ]


def standing(played: Played) -> frozenset[str]:
    """The final store: names of `final` for their wordings, and texts that are no part of it."""
    scenario = played.scenario
    names = {w: name for name in scenario.final for w in scenario.wordings(name)}
    return frozenset(names.get(t, t) for t in played.texts if t not in scenario.may_stand)


def problems(ways: Sequence[Way]) -> list[str]:
    """A line for each wrong store, failed event and harmed memory."""
    lines = unequal_stores(ways)
    for way in ways:
        if way.name in RIGHT:
            lines += [f"{way.name}: {name}: {d}" for name, d in way.differences.items()]
            lines += [
                f"{way.name}: {played.scenario.name}: failed: {event['error']}"
                for played in way.played
                for event in played.failed
            ]
        lines += [f"{way.name}: {name}: harmed {facts}" for name, facts in way.harm.items()]
        lines += [f"{way.name}: {p.scenario.name}: lost {p.lost}" for p in way.played if p.lost]
    return lines
