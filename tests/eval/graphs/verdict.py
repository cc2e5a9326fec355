"""Verdicts on played graphs: expected against final graph, and relations that were harmed."""

from __future__ import annotations

from collections.abc import Iterable

from tests.eval.graphs.answers import NEW_NAMES
from tests.eval.graphs.play import PlayedGraph
from tests.eval.paths.worlds import Edge


def differences(played: PlayedGraph) -> list[str]:
    """Nodes, current relations and ends that are missing or too many."""
    expected = played.scenario.graph
    ended = sorted(played.lines("INVALIDATE"))
    return [
        *(f"two nodes {label}" for label in played.twice),
        *_unequal("node", expected.nodes.items(), played.nodes.items()),
        *_unequal("relation", expected.now, played.now),
        *_unequal("end", expected.ended, ended),
    ]


def harmed(played: PlayedGraph, way: str) -> list[str]:
    """Right relations that ended without a reason, and nodes that no dialogue names.

    A right relation is one of the expected graph. It may end only if the dialogue ends it.
    """
    expected = played.scenario.graph
    right, ends = _bare(expected.now), _bare(expected.ended)
    lost = right & set(played.lines("ADD")) - _bare(played.now)
    stopped = (right - ends) & set(played.lines("INVALIDATE"))
    lines = [f"lost {edge}" for edge in sorted(lost | stopped)]
    if way not in NEW_NAMES:
        facts = played.scenario.facts.values()
        known = {name for fact in facts for edge in fact.states for name in (edge[0], edge[2])}
        lines += [f"unknown {label}" for label in sorted(_names(played) - known)]
    return lines


def _names(played: PlayedGraph) -> set[str]:
    return {label.split(" (")[0] for label in played.nodes}


def _bare(edges: Iterable[Edge]) -> set[Edge]:
    """Relations with names instead of labels."""
    return {(source.split(" (")[0], name, end.split(" (")[0]) for source, name, end in edges}


def _unequal(what: str, expected: Iterable[object], actual: Iterable[object]) -> list[str]:
    wanted, seen = list(expected), list(actual)
    return [
        *(f"missing {what} {each}" for each in wanted if each not in seen),
        *(f"extra {what} {each}" for each in seen if each not in wanted),
        *(f"{what} {each} twice" for each in {*seen} if seen.count(each) > wanted.count(each) > 0),
    ]
