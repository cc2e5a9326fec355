"""Whom a question names, among those who said something."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.lexical import fold

# A shorter first name is too often a word: "Al", "Jo".
SHORTEST = 3
# A handle with digits in it is an id, and nobody asks for it by its first part.
_WORDS = re.compile(r"[^\W\d_]+")


def named(question: str, speakers: Iterable[str]) -> str | None:
    """The one speaker that the question names, by full or first name; None for none or several.

    A question that names two is about what is between them: neither is preferred.
    """
    words = _words(question)
    found = [speaker for speaker in speakers if _is_named(speaker, words)]
    return found[0] if len(found) == 1 else None


def _is_named(speaker: str, words: list[str]) -> bool:
    name = _words(speaker)
    if not name:
        return False
    first = len(name[0]) >= SHORTEST and name[0] in words
    return first or any(words[at : at + len(name)] == name for at in range(len(words)))


def _words(text: str) -> list[str]:
    return _WORDS.findall(fold(text))
