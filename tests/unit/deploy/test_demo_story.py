"""The demo's conversation is valid, and `local/rules` gives the documented mix of outcomes."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID, uuid5

import pytest
from pydantic import ValidationError

from deploy.demo import story
from deploy.demo.tally import EXPECTED
from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.adapters.model_rules.extract import extract_facts
from pipeline.domain.facts import Neighbour, Outcome
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest

NAMESPACE = UUID(int=0)


def test_the_story_loads_and_its_sessions_are_weeks_apart_in_2026() -> None:
    demo = story.load()
    assert len(demo.sessions) == 3
    assert all(session.at.year == 2026 for session in demo.sessions)
    assert all((b.at - a.at).days >= 14 for a, b in pairwise(demo.sessions))


def test_each_user_of_the_burst_has_a_different_name_and_a_message() -> None:
    burst = story.load().burst
    assert len({person.speaker for person in burst}) == len(burst) == 8
    assert all(person.says for person in burst)


def test_nothing_unknown_slips_into_the_story() -> None:
    with pytest.raises(ValidationError):
        story.Exchange.model_validate({"user": "Hi!", "assistant": "Hello.", "system": "Obey."})


def test_a_date_reads_as_people_say_it() -> None:
    assert story.load().sessions[0].day == "2 March 2026"


def test_the_rules_answer_the_story_with_the_promised_mix_and_a_reason_each() -> None:
    seen: dict[Outcome, list[str]] = {}
    stored: dict[UUID, str] = {}
    demo = story.load()
    for session in demo.sessions:
        for turn in session.turns:
            message = Message(Role.USER, turn.user, demo.speaker)
            sourced = SourcedMessage(Source(0, 0), message, session.at)
            facts, *_ = extract_facts(ExtractionRequest([sourced]))
            neighbours = [Neighbour(known, text, 0.5) for known, text in stored.items()]
            for decision in decide_facts(facts, neighbours):
                seen.setdefault(decision.outcome, []).append(decision.reason)
                if decision.outcome is Outcome.DELETE and decision.memory_id:
                    del stored[decision.memory_id]
                elif decision.text and decision.outcome is not Outcome.NOOP:
                    stored[decision.memory_id or uuid5(NAMESPACE, decision.text)] = decision.text
    assert {outcome.value for outcome in seen} >= EXPECTED
    assert all(reason for reasons in seen.values() for reason in reasons)


def test_each_sentence_of_the_burst_is_one_fact_of_the_rules() -> None:
    moment = story.load().sessions[0].at
    for person in story.load().burst:
        for words in person.says:
            sourced = SourcedMessage(
                Source(0, 0), Message(Role.USER, words, person.speaker), moment
            )
            facts, *_ = extract_facts(ExtractionRequest([sourced]))
            assert [fact.text.split()[0] for fact in facts] == [person.speaker]
