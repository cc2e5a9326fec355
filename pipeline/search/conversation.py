"""Conversation: the turns before a question, which say what "it" or "there" is.

    user       My half marathon is coming closer.
    assistant  Exciting! How is training?
    user       Good. Who could I ask about the plan?        ◄── the question

The question alone finds little. The user's earlier turns add their words, and their vectors with a
weight that falls with their distance. The assistant's turns are left out: they often guess.

Source: `python -m tests.eval.followups`, recall@5 of 40 follow-up questions in four languages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.domain.messages import Message, Role
from pipeline.domain.vectors import Vector

# Number of earlier turns that count, and the weight of the last of them; each further one counts
# less by the factor FADING. The question's own weight is 1.
MOST_EARLIER = 4
WEIGHT, FADING = 0.5, 0.7


def spoken(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the user's turns, newest first; blank ones are left out."""
    texts = (message.content.strip() for message in messages if message.role is Role.USER)
    return [text for text in texts if text][::-1]


def blended(vectors: Sequence[Vector]) -> Vector:
    """Return one vector of length 1 for the question and the turns before it, newest first."""
    if len(vectors) == 1:
        return vectors[0]
    weights = [1.0, *(WEIGHT * FADING**place for place in range(len(vectors) - 1))]
    total = np.asarray(weights, np.float32) @ np.stack(vectors)
    length = float(np.linalg.norm(total))
    return total / length if length else vectors[0]
