"""The dialogues with a graph: their themes, the model's answers, and verdicts on wrong graphs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.eval.graphs import late
from tests.eval.graphs.answers import BAD, GraphAnswers, GraphOracle
from tests.eval.graphs.play import PlayedGraph
from tests.eval.graphs.run import WAYS, GraphWay, load, problems
from tests.eval.graphs.verdict import differences, harmed
from tests.eval.report import graph_table
from tests.eval.scenarios.bad import GOOD

SCENARIOS = {scenario.name: scenario for scenario in load()}
MOVE = SCENARIOS["sister-moves"]
LEAST = {"en": 20, "de": 10, "es": 10, "zh": 10}
THEMES = {
    "move", "marriage", "divorce", "ownership", "employer", "alias", "same-name", "passive",
    "negation", "also", "plan", "past", "repeat",
}  # fmt: skip
PROMPT = """## Current relations
1: "User" has_sister "Ines"
2: "Ines" lives_in "Bern"

## Facts
1: "Ines moved to Porto."
"""
LINES = [
    ("ADD", "User", "has_sister", "Ines"), ("ADD", "Ines", "lives_in", "Bern"),
    ("INVALIDATE", "Ines", "lives_in", "Bern"), ("ADD", "Ines", "lives_in", "Porto"),
]  # fmt: skip


def played(**changes: Any) -> PlayedGraph:
    """The dialogue at its right end, with changes."""
    names = ("event", "source", "relationship", "target")
    rows = [dict(zip(names, line, strict=True)) for line in changes.pop("lines", LINES)]
    event = {
        "status": "SUCCEEDED", "graph_status": "SUCCEEDED", "graph": rows, "error": None,
        "usage": {"calls": 2},
    }  # fmt: skip
    right = PlayedGraph(MOVE, [event], dict(MOVE.graph.nodes), [], sorted(MOVE.graph.now))
    return replace(right, **changes)


def test_every_language_and_theme_has_its_dialogues() -> None:
    counts = Counter(scenario.language for scenario in SCENARIOS.values())
    assert all(counts[language] >= least for language, least in LEAST.items())
    assert {tag for scenario in SCENARIOS.values() for tag in scenario.tags} >= THEMES
    texts = [fact.text.plain for s in SCENARIOS.values() for fact in s.facts.values()]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize("behaviour", BAD)
async def test_every_bad_model_answers_with_something_else(behaviour: str) -> None:
    answers = GraphAnswers(GraphOracle(list(SCENARIOS.values())))
    good = await answers("relate", PROMPT)
    assert json.loads(good)["relations"] == [
        {"fact": 1, "source": "Ines", "relation": "moved_to", "target": "Porto"}
    ]
    answers.behaviour = behaviour
    assert await answers("relate", PROMPT) != good


WITHOUT_SISTER = [edge for edge in MOVE.graph.now if edge[1] != "has_sister"]


@pytest.mark.parametrize(
    ("graph", "wrong", "harm"),
    [
        (played(), 0, 0),
        (played(now=WITHOUT_SISTER), 1, 1),
        (played(now=WITHOUT_SISTER, lines=LINES[1:]), 1, 0),
        (played(lines=LINES[:2]), 1, 0),
        (played(lines=[*LINES, ("INVALIDATE", "User", "has_sister", "Ines")]), 1, 1),
        (played(nodes={**MOVE.graph.nodes, "Zorro": "person"}), 1, 1),
        (played(twice=["Ines"]), 1, 0),
        (played(now=[*MOVE.graph.now, MOVE.graph.now[0]]), 1, 0),
    ],
)
def test_verdicts(graph: PlayedGraph, wrong: int, harm: int) -> None:
    assert len(differences(graph)) == wrong
    assert len(harmed(graph, "wrong_types")) == harm


def test_wrong_graphs_harm_and_failed_events_are_problems() -> None:
    way = GraphWay(GOOD, [played()], {}, {}, 1.0)
    assert problems([way]) == []
    failed = played(events=[{"status": "FAILED", "error": "no model", "graph": None}])
    assert (
        len(problems([replace(way, wrong={"a": ["x"]}, harm={"a": ["y"]}, played=[failed])])) == 3
    )
    assert "| good | 1 of 1 | 2 of 2 | 1 of 1 | 0 | 0 of 1 |" in graph_table({GOOD: way.figures()})
    assert set(WAYS) == {GOOD, *BAD}


def test_a_graph_that_differs_after_shuffled_arrival_is_a_problem() -> None:
    first, second = (turn.at for turn in MOVE.turns)
    bern, porto = (frozenset({("Ines", "lives_in", place)}) for place in ("Bern", "Porto"))
    right = late.PlayedTwice(MOVE, {first: bern, second: porto}, {first: bern, second: porto})
    assert late.problems([right]) == []
    wrong = replace(right, late={first: frozenset(), second: bern | porto})
    assert len(late.problems([right, wrong])) == 2
    row = {"dialogues": 2, "times": 4, "right": 2, "missing": 1, "extra": 1}
    assert late.figures([right, wrong]) == {"en": row, "all": row}
