"""Results that are versions of one statement: the later one comes first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from pipeline.domain.passages import PassageKey
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.search.candidates import Score, Signals
from pipeline.search.ranking.latest import Hit, latest_first
from pipeline.search.weights import Weights
from tests.support.memories import active_memory

DAY_ONE = datetime(2026, 3, 1, tzinfo=UTC)
SCOPE = Scope(ProjectId(UUID(int=9)), user_id="maya")


def hit(text: str, day: int, fused: float = 1.0, lexical: float = 0.5, **values: Any) -> Hit:
    memory = active_memory(day + 1, SCOPE, text, DAY_ONE + timedelta(days=day))
    score = Score(Signals(lexical=lexical), Weights(), fused)
    return Hit(PassageKey(memory.id), replace(memory, **values), score)


def order(*hits: Hit) -> list[str]:
    ordered = latest_first(hits)
    scores = [each.score.total for each in ordered]
    assert scores == sorted(scores, reverse=True)
    return [each.passage.text for each in ordered]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Deploys go to Heroku", "Deploys go to Fly"),
        ("User lives in Berlin", "User lives in Tokyo"),
        ("Die Sitzung ist am Montag", "Die Sitzung ist am Dienstag"),
        ("La reunión del equipo es en Lima", "La reunión del equipo es en Quito"),
        ("会议在北京举行", "会议在上海举行"),
    ],
)
def test_the_later_version_comes_first(old: str, new: str) -> None:
    other = hit("Maya has a cat", 9, 0.9)
    first, second = hit(old, 1, 1.0), hit(new, 5, 0.85)
    assert order(first, other, second) == [new, old, "Maya has a cat"]
    assert order(replace(second, score=first.score), hit(old, 1, 0.8)) == [new, old]


def test_three_versions_come_in_the_order_of_their_times() -> None:
    texts = {day: f"The office is on floor {day}" for day in (2, 3, 4)}
    hits = [hit(texts[3], 3, 1.0), hit(texts[2], 2, 0.9), hit(texts[4], 4, 0.85)]
    assert order(*hits) == [texts[4], texts[3], texts[2]]


def test_other_statements_and_far_scores_stay_in_place() -> None:
    old = hit("Deploys go to Heroku", 1)
    assert order(old, hit("Invoices go out on Friday", 5, 0.9))[0] == old.passage.text
    assert order(old, hit("Deploys go to Fly", 5, 0.5))[0] == old.passage.text
    other_speaker = hit("Deploys go to Fly", 5, 0.9, speaker="Tom")
    assert order(old, other_speaker)[0] == old.passage.text


def test_a_question_that_names_the_older_value_finds_it_first() -> None:
    old, new = hit("Deploys go to Heroku", 1, 1.0, 0.9), hit("Deploys go to Fly", 5, 0.9, 0.5)
    assert order(old, new) == [old.passage.text, new.passage.text]


def test_a_plan_and_what_held_before_do_not_come_first() -> None:
    old = hit("Maya lives in Bern", 1)
    ahead = hit("Maya lives in Rome", 5, 0.9, valid_from=DAY_ONE + timedelta(days=90))
    before = hit("Maya lives in Graz", 6, 0.9, valid_from=DAY_ONE - timedelta(days=900))
    assert order(old, ahead, before)[0] == old.passage.text


def test_slots_say_what_is_a_version() -> None:
    same: dict[str, Any] = {"subject": "Maya", "attribute": "residence"}
    other: dict[str, Any] = {"subject": "Maya", "attribute": "birthplace"}
    old = hit("Maya is at home in Bern", 1, 1.0, **same)
    assert order(old, hit("Rome is where she is now", 5, 0.9, **same))[0].startswith("Rome")
    assert order(old, hit("Maya is at home in Rome", 5, 0.9, **other))[0] == old.passage.text
    several: dict[str, Any] = {"subject": "Maya", "attribute": "languages"}
    spoken = hit("Maya speaks German", 1, 1.0, **several)
    assert order(spoken, hit("Maya speaks Polish", 5, 0.9, **several))[0] == spoken.passage.text


def test_messages_of_a_dialogue_in_the_same_words_keep_their_order() -> None:
    first = hit("I ran a race in the hills for the shelter", 1)
    second = hit("My sister ran a race in the hills too", 5, 0.9)
    assert order(first, second)[0] == second.passage.text
    messages = [replace(each, in_dialogue=True) for each in (first, second)]
    assert order(*messages) == [first.passage.text, second.passage.text]


def test_messages_of_a_dialogue_about_one_slot_come_latest_first() -> None:
    old = hit("I live in Bern", 1, subject="user", attribute="residence")
    new = hit("I live in Basel", 5, 0.9, subject="user", attribute="residence")
    messages = [replace(each, in_dialogue=True) for each in (old, new)]
    assert order(*messages) == ["I live in Basel", "I live in Bern"]
