"""Content words of a question: the words that an answer has to account for.

    "What is Maya allergic to?"     Maya, allergic
    "Wie hoch ist die Miete?"       Miete
    "¿Qué sabes de Andrés?"         Andrés
    "陈薇对什么过敏？"                陈薇, 过敏

Question words, auxiliary verbs and requests ("tell me", "weißt du") are left out: they say what is
asked, not about what. English, German, Spanish and Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.text import terms
from pipeline.text.times.dates import MONTHS, UNITS, WEEKDAYS
from pipeline.text.word_lists import lines_of

# Maximum number of content words; the rest is not compared.
MOST_WORDS = 12

# Words that are content in other phrases or languages: "art", "Kind".
_PHRASES = re.compile(
    r"\b(?:(?:kind|sort|type)s? of|for a living|art von|tipo de|clase de)\b", re.IGNORECASE
)
_ASKING_TERMS = frozenset(terms.terms(" ".join(lines_of("question_words.txt"))))
# Removed before the text is split into pairs, the longest first.
_CHINESE = " ".join(lines_of("question_words_unspaced.txt"))
_UNSPACED = re.compile("|".join(sorted(_CHINESE.split(), key=len, reverse=True)))
_TIME_TERMS = frozenset(terms.terms(" ".join([*MONTHS, *WEEKDAYS, *UNITS])))
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A word as it is written, and its terms; a run of Chinese has several.

    `first`: it begins the question, so its capital letter says nothing.
    """

    text: str
    terms: tuple[str, ...]
    first: bool = False

    @property
    def is_name(self) -> bool:
        """True for a word with a capital letter inside a question, and for a script without."""
        return not self.text[:1].islower() and not self.first

    @property
    def is_time(self) -> bool:
        """True for a month, a weekday, a unit of time or a number."""
        return all(map(is_time_term, self.terms))


def is_time_term(term: str) -> bool:
    """Tell if a term is a month, a weekday, a unit of time or a number."""
    return term in _TIME_TERMS or term.isdecimal()


def content_words(question: str) -> list[ContentWord]:
    """Return the different content words of a question, at most MOST_WORDS.

    Empty if it asks about nothing in particular: "What do you know?"
    """
    plain = _PHRASES.sub(" ", question)
    if not _KANA_OR_HANGUL.search(plain):
        plain = _UNSPACED.sub(" ", plain)
    words: dict[tuple[str, ...], ContentWord] = {}
    begins = question.lstrip("¿ ")
    for text, of_word in terms.words(plain):
        if not is_asking(of_word):
            words.setdefault(of_word, ContentWord(text, of_word, begins.startswith(text)))
    return list(words.values())[:MOST_WORDS]


def is_asking(of_word: Iterable[str]) -> bool:
    """Tell if a word with these terms only says what is asked, not about what."""
    return _ASKING_TERMS.issuperset(of_word)


def is_latin(text: str) -> bool:
    """Tell if most letters of the text are Latin."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    return 2 * latin >= len(letters)


def has_known_question_words(text: str) -> bool:
    """Tell if the text is in a script whose question words are known: Latin, or Chinese.

    In other scripts a question word looks like a content word.
    """
    if is_latin(text):
        return True
    letters = [letter for letter in text if letter.isalpha() and not letter.isascii()]
    return not _KANA_OR_HANGUL.search(text) and all("\u3400" <= at <= "\u9fff" for at in letters)
