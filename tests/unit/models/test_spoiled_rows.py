"""Answers of which some rows are unusable, also after the repair: the other rows count."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from pipeline.domain.curation import CurationRequest
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact, Neighbour, Outcome
from pipeline.domain.graph.values import Entity
from pipeline.domain.limits import LONGEST_REASON, LONGEST_TEXT
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.models.prompted import PromptedModel
from pipeline.models.questions.curate import curate_prompt, parse_proposals
from pipeline.models.questions.decide import NO_REASON, UNDECIDED, parse_decisions
from pipeline.models.questions.extract import MOST_FACTS, parse_facts
from pipeline.models.questions.relate import parse_relations
from pipeline.ports import ExtractionRequest
from tests.unit.models.test_prompted import SAID_AT, ScriptedLLM

FACTS = [Fact("Ann lives in Rome.", Source(0, 0)), Fact("Ann likes tea.", Source(0, 0))]
OFFERED = [Neighbour(UUID(int=1), "Ann lives in Paris.", 0.8)]
MESSAGES = [SourcedMessage(Source(0, 0), Message(Role.USER, "I live in Rome."), SAID_AT)]
GOOD = {"fact": 1, "action": "ADD", "target": None, "text": None, "reason": "New."}


def decisions(*rows: Any) -> str:
    return json.dumps({"decisions": rows})


@pytest.mark.parametrize(
    "row",
    [
        {"fact": 2, "action": "MERGE"},
        {"fact": 2, "action": None},
        {"fact": "second", "action": "ADD"},
        {"fact": 3, "action": "ADD"},
        {"fact": 2, "action": "UPDATE", "target": "first", "text": "Ann likes tea."},
        {"fact": 2, "action": "UPDATE", "target": 1, "text": "x" * (LONGEST_TEXT + 1)},
        "ADD",
        None,
    ],
)
async def test_a_fact_without_a_valid_decision_is_added(row: Any) -> None:
    text = decisions(GOOD, row)
    with pytest.raises(MalformedAnswer):
        parse_decisions(text, FACTS, OFFERED)
    llm = ScriptedLLM(text, text)
    first, second = (await PromptedModel(llm).decide(FACTS, OFFERED, Instructions())).value
    assert (first.outcome, first.reason) == (Outcome.ADD, "New.")
    assert (second.outcome, second.text, second.reason) == (Outcome.ADD, FACTS[1].text, UNDECIDED)
    assert len(llm.asked) == 2


@pytest.mark.parametrize("rows", [["ADD", None], [{"fact": 7, "action": "ADD"}], [], None])
def test_an_answer_without_a_valid_decision_fails(rows: list[Any] | None) -> None:
    with pytest.raises(MalformedAnswer):
        parse_decisions(json.dumps({"decisions": rows}), FACTS, OFFERED, mend=True)


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ({"reason": ""}, NO_REASON),
        ({"reason": {"a": 1}}, NO_REASON),
        ({"reason": "\x00 "}, NO_REASON),
        ({"reason": "r" * 200_000}, "r" * LONGEST_REASON),
        ({"text": ""}, "New."),
        ({"target": ""}, "New."),
        ({"target": "null"}, "New."),
        ({"action": " add"}, "New."),
    ],
)
def test_a_value_that_decides_nothing_costs_no_repair(spoiled: dict[str, Any], reason: str) -> None:
    [decision] = parse_decisions(decisions(GOOD | spoiled), FACTS[:1], OFFERED)
    assert (decision.outcome, decision.reason) == (Outcome.ADD, reason)


def fact(text: str) -> dict[str, Any]:
    return {"messages": [1], "text": text}


async def test_a_fact_longer_than_a_memory_of_a_client_is_left_out() -> None:
    rows = [fact("Ann lives in Rome."), fact("Rome " * LONGEST_TEXT)]
    text = json.dumps({"facts": rows})
    answer = await PromptedModel(ScriptedLLM(text, text)).extract(ExtractionRequest(MESSAGES))
    assert [stated.text for stated in answer.value] == ["Ann lives in Rome."]
    assert f"facts.1.text: Value error, must have at most {LONGEST_TEXT}" in (answer.note or "")


async def test_a_runaway_list_of_facts_is_cut() -> None:
    text = json.dumps({"facts": [fact(f"Ann owns item {n}.") for n in range(MOST_FACTS + 7)]})
    with pytest.raises(MalformedAnswer, match=f"facts: {MOST_FACTS + 7} are too many"):
        parse_facts(text, MESSAGES, Instructions())
    answer = await PromptedModel(ScriptedLLM(text, text)).extract(ExtractionRequest(MESSAGES))
    assert len(answer.value) == MOST_FACTS
    assert "after a repair: 7. facts: " in (answer.note or "")


def test_an_invalid_proposal_costs_only_itself_after_the_repair() -> None:
    rows = [{"kind": "DELETE", "memories": [1]}, {"kind": "MERGE", "memories": [2]}]
    text = json.dumps({"proposals": rows})
    with pytest.raises(MalformedAnswer, match=r"proposals\.1\.kind"):
        parse_proposals(text, 2)
    prompt = curate_prompt(CurationRequest((), (), ()))
    assert prompt.parse_repaired is not None
    [proposal] = parse_proposals(text, 2, mend=True)
    assert (proposal.targets, proposal.reason) == ((0,), NO_REASON)
    with pytest.raises(MalformedAnswer):
        parse_proposals(json.dumps({"proposals": rows[1:]}), 2, mend=True)


@pytest.mark.parametrize("type_", [{}, {"type": None}, {"type": " "}, {"type": "?!"}])
def test_an_entity_without_a_type_is_a_concept(type_: dict[str, Any]) -> None:
    row = {"fact": 1, "source": "User", "relation": "lives_in", "target": "Rome"}
    answer = {"entities": [{"name": "Rome"} | type_], "relations": [row], "ended": None}
    [edge] = parse_relations(json.dumps(answer), 1, []).relations
    assert edge.destination == Entity("Rome", "concept")
