"""All scenarios through one real stack, in every way: figures of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from tests.eval.scenarios.bad import BAD, GOOD, Answers
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.oracle import Oracle
from tests.eval.scenarios.play import Played, play, shuffled
from tests.eval.scenarios.server import EvalServer
from tests.eval.scenarios.verdict import Difference, difference, harmed, rows
from tests.support.stack import Client

UNORDERED = "out of order"
WAYS = (GOOD, UNORDERED, *BAD)


@dataclass(frozen=True)
class Way:
    """All scenarios in one way. `differences` and `harm` name the scenarios that are not right."""

    name: str
    played: Sequence[Played]
    differences: dict[str, Difference]
    harm: dict[str, list[str]]
    seconds: float
    calls: int = 0
    prefix_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for played in self.played for event in played.events]

    def figures(self) -> dict[str, Any]:
        """The figures of a row of the table."""
        outcomes = [row["event"] for played in self.played for row in rows(played)]
        usage = [event["usage"] for event in self.events]
        calling = [u["prompt_tokens"] for u in usage if u["calls"]]
        return {
            "scenarios": len(self.played),
            "right": len(self.played) - len(self.differences),
            "harmed": sum(map(len, self.harm.values())),
            "adds": len(self.events),
            "failed": sum(len(played.failed) for played in self.played),
            "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
            "calls_per_add": round(mean(u["calls"] for u in usage), 2),
            "prompt_tokens_per_add": round(mean(u["prompt_tokens"] for u in usage)),
            "prompt_tokens_median": round(median(calling)) if calling else 0,
            "completion_tokens_per_add": round(mean(u["completion_tokens"] for u in usage)),
            "seconds": round(self.seconds, 1),
        }


async def run_way(
    name: str, scenarios: Sequence[Scenario], client: Client, server: EvalServer, run: str
) -> Way:
    """Play all scenarios at once, each as a user of its own."""
    server.answers.behaviour = name if name in BAD else GOOD
    server.calls.clear()
    began = time.perf_counter()

    async def played(scenario: Scenario) -> Played:
        turns = shuffled(scenario) if name == UNORDERED else scenario.turns
        return await play(client, scenario, f"{run}-{name}-{scenario.name}", turns)

    results = await asyncio.gather(*map(played, scenarios))
    seconds = time.perf_counter() - began
    differences = {p.scenario.name: d for p in results if (d := difference(p))}
    harm = {p.scenario.name: names for p in results if (names := harmed(p, oracle(server)))}
    prefixes = {kind: prefix_tokens(server, kind) for kind in ("extract", "decide")}
    return Way(name, results, differences, harm, seconds, len(server.calls), prefixes)


def oracle(server: EvalServer) -> Oracle:
    return server.answers.oracle


def prefix_tokens(server: EvalServer, kind: str) -> int:
    """Tokens that all prompts of this kind begin with."""
    prompts = [call.prompt for call in server.calls if call.kind == kind]
    return server.tokens(_common_prefix(prompts)) if prompts else 0


def _common_prefix(prompts: Sequence[str]) -> str:
    """The characters that all prompts begin with: those that the first and the last in order do."""
    first, last = min(prompts), max(prompts)
    pairs = zip(first, last, strict=False)
    length = next((n for n, (a, b) in enumerate(pairs) if a != b), len(first))
    return first[:length]


def equal_stores(first: Iterable[Played], second: Iterable[Played]) -> list[str]:
    """Scenarios with the same final store in both, apart from take-backs that came too early."""
    pairs = zip(first, second, strict=True)
    return [a.scenario.name for a, b in pairs if standing(a) == standing(b)]


def standing(played: Played) -> frozenset[str]:
    """The final store: names of `final` for their wordings, and texts that are no part of it."""
    scenario = played.scenario
    names = {w: name for name in scenario.final for w in scenario.wordings(name)}
    return frozenset(names.get(t, t) for t in played.texts if t not in scenario.may_stand)


def server_for(scenarios: Sequence[Scenario]) -> EvalServer:
    return EvalServer(Answers(Oracle(scenarios)))
