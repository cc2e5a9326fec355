"""The turns before a question: which ones count, and how much."""

from __future__ import annotations

import numpy as np

from pipeline.domain.messages import Message, Role
from pipeline.search.conversation import blended, spoken


def test_only_the_users_turns_count_newest_first() -> None:
    messages = [
        Message(Role.SYSTEM, "Be kind."),
        Message(Role.USER, "My sister moves."),
        Message(Role.ASSISTANT, "Where to?"),
        Message(Role.USER, "  "),
        Message(Role.USER, "Guess. "),
    ]
    assert spoken(messages) == ["Guess.", "My sister moves."]


def test_the_question_weighs_most_and_the_result_has_length_one() -> None:
    question, last, first = np.eye(3, dtype=np.float32)
    vector = blended([question, last, first])
    assert vector[0] > vector[1] > vector[2] > 0
    assert np.isclose(np.linalg.norm(vector), 1.0)


def test_opposite_vectors_leave_the_question() -> None:
    question = np.array([1.0, 0.0], np.float32)
    assert np.allclose(blended([question, -2 * question]), question)
