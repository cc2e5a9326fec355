"""The oracle decides from what it is shown; verdicts see a wrong store and a lost memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.eval.scenarios.bad import BAD, Answers
from tests.eval.scenarios.dialogues import Scenario, load
from tests.eval.scenarios.oracle import Oracle
from tests.eval.scenarios.play import Played
from tests.eval.scenarios.verdict import difference, harmed, kept, stale

SCENARIOS = {scenario.name: scenario for scenario in load()}
MAYA = SCENARIOS["maya-moves-once"]
BERN, CAT, PORTO = (fact.text.plain for fact in MAYA.facts.values())


@pytest.fixture
def oracle() -> Oracle:
    return Oracle(list(SCENARIOS.values()))


def prompt(memories: list[str], facts: list[str]) -> str:
    def numbered(texts: list[str]) -> str:
        return "\n".join(f"{n} (2026-03-02): {json.dumps(t)}" for n, t in enumerate(texts, start=1))

    return f"## Memories\n{numbered(memories)}\n\n## Facts\n{numbered(facts)}"


def decided(oracle: Oracle, memories: list[str], facts: list[str]) -> list[tuple[Any, ...]]:
    rows = oracle.decide(prompt(memories, facts))["decisions"]
    return [(row["fact"], row["action"], row["target"], row["text"]) for row in rows]


def test_it_extracts_the_facts_of_a_message_with_their_structure(oracle: Oracle) -> None:
    message = MAYA.turns[0].messages[0]["content"]
    rows = oracle.extract(f"## Messages\nsaid x\n1 user: {json.dumps(message)}")["facts"]
    assert [(row["messages"], row["text"], row["attribute"]) for row in rows] == [
        ([1], BERN, "residence"),
        ([1], CAT, "pets"),
    ]


def test_it_updates_the_memory_that_a_fact_replaces_and_no_other(oracle: Oracle) -> None:
    assert decided(oracle, [CAT, BERN], [PORTO]) == [(1, "UPDATE", 2, PORTO)]
    assert decided(oracle, [CAT], [PORTO]) == [(1, "ADD", None, None)]
    assert decided(oracle, [PORTO], [BERN]) == [(1, "NOOP", 1, None)]


def test_it_changes_all_memories_that_a_fact_replaces(oracle: Oracle) -> None:
    facts = SCENARIOS["tom-breaks-up"].facts
    partner, wedding, _, single = (fact.text.plain for fact in facts.values())
    assert decided(oracle, [wedding, partner], [single]) == [
        (1, "UPDATE", 2, single),
        (1, "DELETE", 1, None),
    ]


def test_it_merges_what_extends_a_memory_in_any_order(oracle: Oracle) -> None:
    scenario = SCENARIOS["dora-also-likes"]
    cheese, chicken = (fact.text.plain for fact in scenario.facts.values())
    [both] = (text.plain for text in scenario.expected)
    assert decided(oracle, [cheese], [chicken]) == [(1, "UPDATE", 1, both)]
    assert decided(oracle, [chicken], [cheese]) == [(1, "UPDATE", 1, both)]


@pytest.mark.parametrize("behaviour", BAD)
async def test_every_bad_model_answers_with_something_else(oracle: Oracle, behaviour: str) -> None:
    answers = Answers(oracle)
    # The fact of Bern is older than the memory of Porto.
    old = behaviour == "dates_ignored"
    question = prompt([CAT, PORTO], [BERN]) if old else prompt([CAT, BERN], [PORTO, CAT])
    good = await answers("decide", question)
    answers.behaviour = behaviour
    spoiled = await answers("decide", question)
    assert spoiled != good


def played(texts: list[str], scenario: Scenario = MAYA) -> Played:
    """A user to whom all facts were added, with these memories at the end."""
    results = [
        {"event": "ADD", "id": str(n), "memory": fact.text.plain}
        for n, fact in enumerate(scenario.facts.values())
    ]
    memories = [{"id": f"end-{n}", "memory": text} for n, text in enumerate(texts)]
    return Played(scenario, "maya", [{"results": results, "status": "SUCCEEDED"}], memories)


@pytest.mark.parametrize(
    ("texts", "right", "harm", "complete", "outdated"),
    [
        ([CAT, PORTO], True, [], 2, 0),
        ([CAT, PORTO, BERN], False, [], 2, 1),
        ([CAT, BERN], False, ["porto"], 1, 1),
        ([PORTO], False, ["cat"], 1, 0),
        ([PORTO, "Maya has a cat."], False, ["cat"], 1, 0),
    ],
)
def test_verdicts(
    oracle: Oracle, texts: list[str], right: bool, harm: list[str], complete: int, outdated: int
) -> None:
    user = played(texts)
    assert (not difference(user)) is right
    assert harmed(user, oracle) == harm
    assert (kept(user), stale(user)) == (complete, outdated)
