"""All dialogues with a graph through one real stack, in every way: figures of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from tests.eval import models
from tests.eval.graphs.answers import BAD, HARMLESS, GraphAnswers, GraphOracle
from tests.eval.graphs.play import PlayedGraph, play_graph
from tests.eval.graphs.verdict import differences, harmed
from tests.eval.scenarios.bad import GOOD
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.dialogues import load as load_dialogues
from tests.eval.scenarios.run import AT_ONCE, with_stack
from tests.eval.scenarios.server import ScenarioServer
from tests.support.stack import Client

FOLDER = Path(__file__).parent
WAYS = (GOOD, *BAD)
# Ways after which every graph must be right.
RIGHT = frozenset({GOOD}) | HARMLESS


@dataclass(frozen=True)
class GraphWay:
    """All dialogues in one way. `wrong` and `harm` name the dialogues that are not right."""

    name: str
    played: Sequence[PlayedGraph]
    wrong: Mapping[str, Sequence[str]]
    harm: Mapping[str, Sequence[str]]
    seconds: float

    def figures(self) -> dict[str, Any]:
        """The figures of a row of the table."""
        events = [event for played in self.played for event in played.events]
        expected = [played.scenario.graph for played in self.played]
        return {
            "dialogues": len(self.played),
            "right": len(self.played) - len(self.wrong),
            "expected": sum(len(graph.now) for graph in expected),
            "current": sum(len({*p.now} & {*p.scenario.graph.now}) for p in self.played),
            "ends_expected": sum(len(graph.ended) for graph in expected),
            "ended": sum(
                len({*p.lines("INVALIDATE")} & {*p.scenario.graph.ended}) for p in self.played
            ),
            "harmed": sum(map(len, self.harm.values())),
            "adds": len(events),
            "failed": sum(event["status"] != "SUCCEEDED" for event in events),
            "graphs_partial": sum(event["graph_status"] == "PARTIAL" for event in events),
            "graphs_failed": sum(event["graph_status"] == "FAILED" for event in events),
            "calls_per_add": round(mean(event["usage"]["calls"] for event in events), 2),
            "seconds": round(self.seconds, 1),
        }


def load() -> list[Scenario]:
    """The dialogues with a graph, in the order of the files."""
    return load_dialogues(FOLDER)


async def run(scenarios: Sequence[Scenario], ways: Mapping[str, Sequence[str]]) -> list[GraphWay]:
    """Play the dialogues with the stand-in. `ways`: names of dialogues by way; none: all."""
    answers = GraphAnswers(GraphOracle(scenarios))
    async with ScenarioServer(scenarios, answers) as server:

        async def all_ways(client: Client) -> list[GraphWay]:
            rows = []
            for way, names in ways.items():
                answers.behaviour = way
                some = [s for s in scenarios if not names or s.name in names]
                rows.append(await _run_way(way, some, client))
            return rows

        return await with_stack(models.stand_in(server), all_ways, graph="on")


async def _run_way(way: str, scenarios: Sequence[Scenario], client: Client) -> GraphWay:
    """Play dialogues, each as a user of its own, AT_ONCE of them at a time."""
    began = time.perf_counter()
    places = asyncio.Semaphore(AT_ONCE)

    async def played(scenario: Scenario) -> PlayedGraph:
        async with places:
            return await play_graph(client, scenario, f"{way}: {scenario.name}")

    results = await asyncio.gather(*map(played, scenarios))
    return GraphWay(
        way,
        results,
        wrong={p.scenario.name: lines for p in results if (lines := differences(p))},
        harm={p.scenario.name: lines for p in results if (lines := harmed(p, way))},
        seconds=time.perf_counter() - began,
    )


def problems(ways: Sequence[GraphWay]) -> list[str]:
    """A line for each wrong graph, failed event and harmed relation."""
    lines = []
    for way in ways:
        if way.name in RIGHT:
            lines += [f"{way.name}: {name}: {'; '.join(row)}" for name, row in way.wrong.items()]
        lines += [f"{way.name}: {name}: harmed: {row}" for name, row in way.harm.items()]
        lines += [
            f"{way.name}: {played.scenario.name}: failed: {event['error']}"
            for played in way.played
            for event in played.events
            if event["status"] != "SUCCEEDED"
        ]
    return lines
