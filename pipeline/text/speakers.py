"""Speakers: the one person that a question names, among those who wrote something."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.text.terms import fold

# A shorter first name is too often a word: "Al", "Jo".
SHORTEST = 3
# A handle with digits in it is an id, which is never asked for by its first part.
_WORDS = re.compile(r"[^\W\d_]+")


def named(question: str, speakers: Iterable[str]) -> str | None:
    """The one speaker that the question names, by full or first name; None for none or several.

    A question that names two is about what is between them: neither is preferred.
    """
    words = _words(question)
    found = [speaker for speaker in speakers if _is_named(speaker, words)]
    return found[0] if len(found) == 1 else None


def unsigned(text: str, speaker: str | None) -> str:
    """The text without its speaker's name in front ("Maya:"), which is no part of its meaning.

    Source: LoCoMo, where it is worth 0.9 of recall@10 to the vectors of such texts.
    """
    if not speaker or not text.startswith(speaker):
        return text
    rest = text.removeprefix(speaker).lstrip()
    said = rest.removeprefix(":").strip()
    return said if rest.startswith(":") and said else text


def _is_named(speaker: str, words: list[str]) -> bool:
    name = _words(speaker)
    if not name:
        return False
    first = len(name[0]) >= SHORTEST and name[0] in words
    return first or any(words[at : at + len(name)] == name for at in range(len(words)))


def _words(text: str) -> list[str]:
    return _WORDS.findall(fold(text))
