"""The precision set: large enough, in four languages, every answer a memory of its own file."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.eval.precision import LANGUAGES, PrecisionSet, load

SETS = [load(language) for language in LANGUAGES]
QUESTIONS = list(chain.from_iterable(each.questions for each in SETS))


def test_it_has_enough_questions_memories_and_questions_without_an_answer() -> None:
    assert len(QUESTIONS) >= 60
    assert sum(len(each.memories) for each in SETS) >= 100
    for held_out in (False, True):
        half = [each for each in QUESTIONS if each.held_out is held_out]
        assert sum(not each.answers for each in half) >= 8
        assert sum(len(each.answers) > 1 for each in half) >= 4


@pytest.mark.parametrize("tested", SETS, ids=LANGUAGES)
def test_every_answer_is_a_memory_and_no_text_occurs_twice(tested: PrecisionSet) -> None:
    answers = chain.from_iterable(question.answers for question in tested.questions)
    assert set(answers) <= set(tested.memories)
    assert len(set(tested.memories.values())) == len(tested.memories)
    assert len({question.text for question in tested.questions}) == len(tested.questions)
