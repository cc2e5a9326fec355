"""Relations at past times after shuffled arrival: `python -m tests.eval.graphs.late`.

Each dialogue of two and more turns is played twice, in order and with its turns shuffled, with the
good model. The graph at the time of each turn must be the same. A table, and a line for each
difference. Exit code 1 if there is one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.eval import models
from tests.eval.graphs.answers import GraphAnswers, GraphOracle
from tests.eval.graphs.play import relations_at
from tests.eval.graphs.run import load
from tests.eval.paths.worlds import Edge
from tests.eval.report import late_table
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.play import play, shuffled
from tests.eval.scenarios.run import AT_ONCE, with_stack
from tests.eval.scenarios.server import ScenarioServer
from tests.support.stack import Client

Graphs = Mapping[datetime, frozenset[Edge]]


@dataclass(frozen=True)
class PlayedTwice:
    """The graphs of a dialogue at the times of its turns, after both ways of arrival."""

    scenario: Scenario
    in_order: Graphs
    late: Graphs

    @property
    def wrong(self) -> list[datetime]:
        """The times at which the two graphs differ."""
        return [at for at, graph in self.in_order.items() if graph != self.late[at]]

    def missing(self, at: datetime) -> list[Edge]:
        """Relations that the graph after shuffled arrival lacks."""
        return sorted(self.in_order[at] - self.late[at])

    def extra(self, at: datetime) -> list[Edge]:
        """Relations that only the graph after shuffled arrival has."""
        return sorted(self.late[at] - self.in_order[at])


def figures(played: Sequence[PlayedTwice]) -> dict[str, dict[str, Any]]:
    """The rows of the table: each language, and all."""
    languages = sorted({each.scenario.language for each in played})
    some = {name: [p for p in played if p.scenario.language == name] for name in languages}
    return {name: _figures(each) for name, each in (some | {"all": list(played)}).items()}


def _figures(played: Sequence[PlayedTwice]) -> dict[str, Any]:
    wrong = [(each, at) for each in played for at in each.wrong]
    times = sum(len(each.in_order) for each in played)
    return {
        "dialogues": len(played),
        "times": times,
        "right": times - len(wrong),
        "missing": sum(len(each.missing(at)) for each, at in wrong),
        "extra": sum(len(each.extra(at)) for each, at in wrong),
    }


def problems(played: Sequence[PlayedTwice]) -> list[str]:
    """A line for each time at which two graphs differ."""
    return [
        f"{each.scenario.name} at {at:%Y-%m-%d}: missing {each.missing(at)}, extra {each.extra(at)}"
        for each in played
        for at in each.wrong
    ]


async def run() -> list[PlayedTwice]:
    """Play the dialogues of two and more turns, through one real stack."""
    scenarios = [scenario for scenario in load() if len(scenario.turns) > 1]
    places = asyncio.Semaphore(AT_ONCE)

    async def one(client: Client, scenario: Scenario) -> PlayedTwice:
        async with places:
            in_order = await _graphs(client, scenario, late=False)
            return PlayedTwice(scenario, in_order, await _graphs(client, scenario, late=True))

    async def every(client: Client) -> list[PlayedTwice]:
        return await asyncio.gather(*(one(client, scenario) for scenario in scenarios))

    async with ScenarioServer(scenarios, GraphAnswers(GraphOracle(scenarios))) as server:
        return await with_stack(models.stand_in(server), every, graph="on")


async def _graphs(client: Client, scenario: Scenario, *, late: bool) -> Graphs:
    """The valid relations a minute after each turn, when all turns are played."""
    user = f"{'late' if late else 'in order'}: {scenario.name}"
    await play(client, scenario, user, shuffled(scenario) if late else scenario.turns)
    times = [turn.at + timedelta(minutes=1) for turn in scenario.turns]
    return {at: await relations_at(client, user, at) for at in times}


def main() -> int:
    played = asyncio.run(run())  # noqa: TID251
    print(late_table(figures(played)))
    lines = problems(played)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
