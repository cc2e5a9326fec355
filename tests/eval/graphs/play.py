"""A dialogue as a user of a real stack, and the graph that the API returns at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pipeline.text.relations.names import NAMING
from tests.eval.paths.worlds import Edge
from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.play import play
from tests.support.stack import Client

PAGE = 200


@dataclass(frozen=True)
class PlayedGraph:
    """A played dialogue: its events, the types of the nodes by label, and current relations.

    `twice`: labels that several nodes have.
    """

    scenario: Scenario
    events: Sequence[Mapping[str, Any]]
    nodes: Mapping[str, str]
    twice: Sequence[str]
    now: Sequence[Edge]

    def lines(self, *outcomes: str) -> Iterator[Edge]:
        """The relations with one of these outcomes on the receipts of the graph."""
        for event in self.events:
            for row in event["graph"] or ():
                if row["event"] in outcomes:
                    yield (row["source"], row["relationship"], row["target"])


async def play_graph(client: Client, scenario: Scenario, user: str) -> PlayedGraph:
    """Play the turns, each as an add of its own, then read the graph."""
    played = await play(client, scenario, user, scenario.turns)
    rows = await _relations(client, user)
    # The nodes of ended relations too: those that held after each turn.
    times = [(turn.at + timedelta(minutes=1)).isoformat() for turn in scenario.turns]
    former = [row for at in times for row in await _relations(client, user, valid_at=at)]
    labels: dict[str, tuple[str, str]] = {}
    for row in (*rows, *former):
        for side in _sides(row):
            node_id, name, kind = (row[f"{side}{what}"] for what in ("_id", "", "_type"))
            if node_id not in labels:
                labels[node_id] = (await _label(client, scenario, node_id, name), kind)
    names = [label for label, _ in labels.values()]
    return PlayedGraph(
        scenario,
        played.events,
        dict(labels.values()),
        sorted({label for label in names if names.count(label) > 1}),
        sorted(
            (labels[row["source_id"]][0], row["relationship"], _target(row, labels)) for row in rows
        ),
    )


async def relations_at(client: Client, user: str, at: datetime) -> frozenset[Edge]:
    """The relations that are valid at a time, by the names of their ends."""
    rows = await _relations(client, user, valid_at=at.isoformat())
    return frozenset((row["source"], row["relationship"], row["target"]) for row in rows)


async def _relations(client: Client, user: str, **times: str) -> list[dict[str, Any]]:
    query = {"user_id": user, "page_size": str(PAGE), **times}
    answer = await client.http.get("/v1/graph/", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def _label(client: Client, scenario: Scenario, node_id: str, name: str) -> str:
    """The name of a node, with its role if the dialogue has namesakes."""
    if not any(label.startswith(f"{name} (") for label in scenario.graph.nodes):
        return name
    answer = await client.http.get(f"/v1/graph/entities/{node_id}/")
    label = f"{name} ({answer.json()['qualifier']})"
    return label if label in scenario.graph.nodes else name


def _sides(row: Mapping[str, Any]) -> Sequence[str]:
    """The ends of a relation that are nodes; another name of a node is none."""
    return ("source",) if row["relationship"] in NAMING else ("source", "target")


def _target(row: Mapping[str, Any], labels: Mapping[str, tuple[str, str]]) -> str:
    return str(row["target"]) if row["relationship"] in NAMING else labels[row["target_id"]][0]
