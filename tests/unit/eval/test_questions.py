"""The questions of the evaluation, their scores, and the stand-in that answers them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.eval.questions.conversations import KINDS, UNKNOWN, load
from tests.eval.questions.methods import chunked
from tests.eval.questions.reader import ANSWER, PerfectReader
from tests.eval.questions.scores import bleu1, f1

CONVERSATIONS = load()


def test_there_are_enough_questions_of_every_kind_and_their_evidence_was_said() -> None:
    questions = [question for c in CONVERSATIONS for question in c.questions]
    counts = Counter(question.kind for question in questions)
    assert len(CONVERSATIONS) >= 5
    assert len(questions) >= 60
    assert set(counts) == set(KINDS)
    assert len({question.ask for question in questions}) == len(questions)
    for conversation in CONVERSATIONS:
        text = "\n".join(line.dated for line in conversation.lines)
        for question in conversation.questions:
            assert bool(question.evidence) == (question.kind != UNKNOWN)
            assert all(part in text for part in question.evidence), question


@pytest.mark.parametrize(
    ("answer", "expected", "f1_score", "bleu_score"),
    [
        ("The capacitor.", "a capacitor", 1.0, 1.0),
        ("Salt", "Salt and Pepper", 0.5, 0.1353),
        ("in Bern, I think", "Bern", 0.4, 0.25),
        ("大理", "上海", 0.0, 0.0),
        ("她在大理", "大理", 0.6667, 0.5),
        ("", "Bern", 0.0, 0.0),
    ],
)
def test_scores_count_the_words_that_answer_and_expectation_share(
    answer: str, expected: str, f1_score: float, bleu_score: float
) -> None:
    assert f1(answer, expected) == pytest.approx(f1_score, abs=1e-4)
    assert bleu1(answer, expected) == pytest.approx(bleu_score, abs=1e-4)


async def test_the_stand_in_answers_only_if_the_context_has_the_evidence() -> None:
    reader = PerfectReader(CONVERSATIONS)
    [question] = [q for c in CONVERSATIONS for q in c.questions if q.answer == "Dundee"]
    with_it = ANSWER.format(context="(2026-01-10) I came from Dundee.", question=question.ask)
    without = ANSWER.format(context="(2026-01-10) I came by train.", question=question.ask)
    assert await reader("other", with_it) == "Dundee"
    assert await reader("other", without) == UNKNOWN


def test_chunks_hold_every_line_once_within_their_size() -> None:
    def words(text: str) -> int:
        return len(text.split())

    chunks = chunked(CONVERSATIONS, 40, words)
    lines = [line.dated for c in CONVERSATIONS for line in c.lines]
    assert "\n".join(chunks).splitlines() == lines
    assert all(words(chunk) <= 40 or "\n" not in chunk for chunk in chunks)
