"""Scores of an answer against the expected one, from 0 to 1.

Words are compared without case, punctuation and articles; of Chinese each character is a word.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
# Articles of the languages of the conversations.
_ARTICLES = frozenset(
    {
        "a", "an", "the", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem",
        "el", "la", "los", "las", "un", "una",
    }
)  # fmt: skip


def words(text: str) -> list[str]:
    """The words that count."""
    return [word for word in _WORD.findall(text.casefold()) if word not in _ARTICLES]


def f1(answer: str, expected: str) -> float:
    """Harmonic mean of the shares of common words in both."""
    given, wanted = words(answer), words(expected)
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def bleu1(answer: str, expected: str) -> float:
    """Share of the answer's words that are expected, less if the answer is too short."""
    given, wanted = words(answer), words(expected)
    if not given:
        return 0.0
    precision = (Counter(given) & Counter(wanted)).total() / len(given)
    return precision * min(1.0, math.exp(1 - len(wanted) / len(given)))
