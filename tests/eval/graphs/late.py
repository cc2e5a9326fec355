"""Relations at past times after late arrival: `python -m tests.eval.graphs.late`.

Each dialogue of two and more turns is played twice, in order and with its turns shuffled, with the
good model. The graph at the time of each turn must be the same. A line for each difference.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

from tests.eval import models
from tests.eval.graphs.answers import GraphAnswers, GraphOracle
from tests.eval.graphs.play import relations_at
from tests.eval.graphs.run import load
from tests.eval.paths.worlds import Edge
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.play import play, shuffled
from tests.eval.scenarios.run import AT_ONCE, with_stack
from tests.eval.scenarios.server import ScenarioServer
from tests.support.stack import Client


async def graphs_at(
    client: Client, scenario: Scenario, *, late: bool
) -> dict[datetime, frozenset[Edge]]:
    """The valid relations a minute after each turn, when all turns are played."""
    user = f"{'late' if late else 'in order'}: {scenario.name}"
    await play(client, scenario, user, shuffled(scenario) if late else scenario.turns)
    times = [turn.at + timedelta(minutes=1) for turn in scenario.turns]
    return {at: await relations_at(client, user, at) for at in times}


async def differences(client: Client, scenario: Scenario) -> list[str]:
    """A line for each time at which the two graphs differ."""
    in_order = await graphs_at(client, scenario, late=False)
    late = await graphs_at(client, scenario, late=True)
    return [
        f"{scenario.name} at {at:%Y-%m-%d}: missing {sorted(graph - late[at])},"
        f" extra {sorted(late[at] - graph)}"
        for at, graph in in_order.items()
        if graph != late[at]
    ]


async def run(scenarios: Sequence[Scenario]) -> list[str]:
    """The differences of all dialogues, through one real stack."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(client: Client, scenario: Scenario) -> list[str]:
        async with places:
            return await differences(client, scenario)

    async def every(client: Client) -> list[str]:
        lines = await asyncio.gather(*(one(client, scenario) for scenario in scenarios))
        return [line for of_scenario in lines for line in of_scenario]

    async with ScenarioServer(scenarios, GraphAnswers(GraphOracle(scenarios))) as server:
        return await with_stack(models.stand_in(server), every, graph="on")


def main() -> int:
    scenarios = [scenario for scenario in load() if len(scenario.turns) > 1]
    lines = asyncio.run(run(scenarios))  # noqa: TID251
    times = sum(len(scenario.turns) for scenario in scenarios)
    print(f"{times - len(lines)} of {times} graphs at past times right, {len(scenarios)} dialogues")
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
