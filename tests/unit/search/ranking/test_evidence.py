"""Evidence: words and closeness of one candidate, each against the other candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.search.candidates import Candidate, Signals
from pipeline.search.ranking.evidence import MEANING, set_evidence
from pipeline.text import terms
from pipeline.text.question_topics import NO_TOPICS, topics
from tests.unit.search.candidates import candidate

STORE = (
    "Maya lives in Porto",
    "Maya is allergic to peanuts",
    "Maya has a cat named Biscuit",
    "Maya plays the cello",
    "Daniel teaches chemistry",
)
DIMENSIONS = 8


def remembered(*texts: str, vectors: Mapping[int, Vector] | None = None) -> list[Candidate]:
    """Candidates with these texts; `vectors` by position, all others point the same way."""
    usual = direction(0)
    candidates = []
    for number, text in enumerate(texts):
        result = candidate(number)
        result.terms = terms.terms(text)
        result.embedding = (vectors or {}).get(number, usual).astype(np.float32).tobytes()
        candidates.append(result)
    return candidates


def direction(number: int) -> Vector:
    unit: Vector = np.eye(DIMENSIONS, dtype=np.float32)[number]
    return unit


def between(first: int, second: int) -> Vector:
    both: Vector = (direction(first) + direction(second)) / np.sqrt(2, dtype=np.float32)
    return both


def evidence(
    question: str,
    candidates: Sequence[Candidate],
    *,
    vector: Vector = NO_VECTOR,
    meanings: Sequence[Vector] = (),
    count_unknown: bool = True,
) -> list[float]:
    """Evidence of each candidate."""
    parts = topics(question)
    words = dict.fromkeys(word.terms for topic in parts.words for word in topic)
    set_evidence(
        candidates,
        parts,
        question=vector,
        meanings=dict(zip(words, meanings, strict=False)),
        count_unknown=count_unknown,
    )
    return [each.score.evidence or 0.0 for each in candidates]


def test_a_memory_with_all_words_has_full_evidence_and_a_name_alone_has_little() -> None:
    values = evidence("What is Maya allergic to?", remembered(*STORE))
    assert values[1] == pytest.approx(1.0)
    assert max(values[0], *values[2:]) < 0.2


def test_a_question_about_something_that_no_memory_has_finds_little() -> None:
    assert max(evidence("Does Maya own a helicopter?", remembered(*STORE))) < 0.2
    named = max(evidence("What does Maya tell Oliver?", remembered(*STORE)))
    assert named < max(evidence("What does Maya tell sailors?", remembered(*STORE)))
    assert max(evidence("Where does Oliver live?", remembered(*STORE))) < 0.6


def test_each_topic_of_a_question_has_evidence_of_its_own() -> None:
    candidates = remembered(*STORE)
    values = evidence("Where does Maya live and what does Daniel teach?", candidates)
    assert values[0] == values[4] == pytest.approx(1.0)
    assert [round(value, 2) for value in candidates[0].score.by_topic] == [1.0, 0.0]


def test_a_typing_error_in_a_word_finds_the_word() -> None:
    values = evidence("What does Danil taech?", remembered(*STORE))
    assert values.index(max(values)) == 4
    assert values[4] > 0.7


def test_a_name_that_the_question_excludes_marks_its_memories() -> None:
    candidates = remembered(*STORE)
    evidence("Who teaches, apart from Daniel?", candidates)
    assert [each.score.excluded for each in candidates] == [False] * 4 + [True]


def test_closeness_to_the_question_replaces_the_vectors_of_words() -> None:
    candidates = remembered(*STORE)
    candidates[2].score = candidates[2].score._replace(closeness=1.0)
    set_evidence(candidates, topics("Any pets?"), by_closeness=True)
    assert [each.score.evidence for each in candidates] == [0.0, 0.0, MEANING, 0.0, 0.0]


def test_a_word_that_only_one_memory_is_close_to_counts_for_it() -> None:
    question = "What pet does Maya have?"
    close = remembered(*STORE, vectors={2: between(1, 2)})
    values = evidence(question, close, vector=direction(1), meanings=[direction(2), direction(0)])
    assert values.index(max(values)) == 2
    assert values[2] > 0.5
    assert evidence(question, remembered(*STORE))[2] < 0.2


def test_closeness_to_a_word_alone_is_not_enough() -> None:
    question = "What pet does Maya have?"
    close = remembered(*STORE, vectors={2: direction(2)})
    values = evidence(question, close, vector=direction(1), meanings=[direction(2), direction(0)])
    assert max(values) < 0.2


def test_a_candidate_without_a_vector_is_judged_by_its_words() -> None:
    bare = remembered(*STORE)
    bare[1].embedding = None
    values = evidence(
        "What is Maya allergic to?",
        bare,
        vector=direction(1),
        meanings=[direction(2), direction(3)],
    )
    assert values[1] == pytest.approx(1.0)


def test_the_name_of_the_speaker_is_part_of_the_text() -> None:
    first, second = remembered("I like tea", "I like tea")
    first.speaker, second.speaker = "Maya", "Jon"
    values = evidence("Does Maya drink tea?", [first, second])
    assert values[0] > values[1]


def test_a_memory_from_the_time_in_the_question_accounts_for_that_time() -> None:
    then, later = remembered("Maya hiked in Tyrol", "Maya hiked in Tyrol")
    then.signals = Signals(date=1.0)
    values = evidence("Where did Maya hike in July?", [then, later])
    assert values[0] == pytest.approx(1.0)
    assert values[1] < 0.7


def test_words_of_unknown_scripts_do_not_count_if_no_memory_has_them() -> None:
    store = remembered("私の猫はミケです", "私は東京に住んでいます")
    question = "猫について"
    strict = evidence(question, store)
    lax = evidence(question, store, count_unknown=False)
    assert lax[0] >= strict[0]


def test_without_content_words_nothing_is_measured() -> None:
    candidates = remembered(*STORE)
    set_evidence(candidates, NO_TOPICS)
    assert {each.score.evidence for each in candidates} == {None}


def test_a_boundary_between_chinese_words_does_not_count() -> None:
    store = remembered("陈薇每周二晚上练瑜伽", "陈薇晚上十一点睡觉", "陈薇开车")
    values = evidence("陈薇晚上十一点睡觉", store)
    assert values[1] == pytest.approx(1.0)
    assert values[2] < 0.2


NUMBER = st.floats(-1, 1, width=32)
VECTOR = st.lists(NUMBER, min_size=DIMENSIONS, max_size=DIMENSIONS).map(
    lambda values: np.array(values, np.float32)
)


@given(
    st.lists(st.tuples(st.sampled_from(STORE), VECTOR), min_size=1, max_size=12),
    st.sampled_from(["Where does Maya live?", "Maya", "a cello", "Does Daniel teach?"]),
    VECTOR,
    VECTOR,
)
def test_evidence_is_a_share_and_never_exceeds_what_meaning_can_give(
    stored: list[tuple[str, Vector]], question: str, vector: Vector, meaning: Vector
) -> None:
    candidates = remembered(
        *(text for text, _ in stored), vectors=dict(enumerate(vector for _, vector in stored))
    )
    words_only = evidence(question, candidates)
    meanings = [meaning] * len(topics(question).words[0])
    both = evidence(question, candidates, vector=vector, meanings=meanings)
    for by_words, value in zip(words_only, both, strict=True):
        assert 0 <= by_words <= value <= max(by_words, 1) + 1e-9
        assert value <= by_words + MEANING + 1e-9
