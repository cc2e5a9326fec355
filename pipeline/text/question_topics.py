"""Topics of a question: the parts that are answered by different texts, and what it excludes.

    "When is the rent due and who owns the flat?"   rent due | owns flat
    "Was weißt du über Mira und Balu?"              Mira | Balu
    "¿Qué bases de datos usamos, salvo Redis?"      bases datos usamos, without Redis

A question is split before a conjunction with a question word, and at a list of words. The words
around a list belong to each of its members. A clause with a pronoun has also the names of the
clauses before it. English, German, Spanish and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.text.questions import MOST_WORDS, ContentWord, content_words
from pipeline.text.word_lists import words_of

# Maximum number of topics; the rest of a longer list is one topic, of at most MOST_WORDS.
MOST_TOPICS = 6
_QUESTION_WORDS = (
    "who|whom|whose|what|where|when|which|how|why|is|are|was|were|do|does|did|can|has|have"
    "|wer|wem|wen|wessen|was|wo|wohin|woher|wann|wie|welche[rnsm]?|warum|wieso|womit|wozu|ist|hat"
    "|quién(?:es)?|qué|dónde|adónde|cuándo|cómo|cuál(?:es)?|cuánt[oa]s?|por qué"
)
_AND = r"and|und|sowie|y|e"
_CLAUSES = re.compile(
    rf"[?;？；。]\s*|,?\s+(?:{_AND})\s+(?=(?:[^\W\d_]{{1,5}}\s+)?(?:{_QUESTION_WORDS})\b)"
    rf"|,\s*(?=(?:{_QUESTION_WORDS})\b)|[，,]\s*(?=[\u3400-\u9fff])",
    re.IGNORECASE,
)
_CONNECTED = re.compile(
    rf"\s*(?:,\s*(?:(?:{_AND}|or|oder|o|u)\s+)?|\s(?:{_AND}|or|oder|o|u|&)\s+|[、和与及])"
    r"(?:(?:the|my|our|his|her|their|an?|de[rnms]|die|das|ein\w*|mein\w*|unser\w*|el|la|los|las"
    r"|mis?|su)\s+)?",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(r"['’]s?$")
_PRONOUNS = words_of(
    """
    he she it they him her them his its their er sie es ihm ihr ihn ihnen él ella ellos ellas le su
    """
)
_EXCLUDED = re.compile(
    r"\b(?:other than|apart from|aside from|except(?: for)?|excluding|besides|but not|not about"
    r"|abgesehen von|außer|nicht über|aber nicht|excepto|salvo|aparte de|menos|pero no"
    r"|que no sean?)\s+|,\s*(?:and )?(?:not|nicht|no)\s+(?=(?-i:[A-ZÄÖÜÁÉÍÓÚÑ]))|除了|不包括",
    re.IGNORECASE,
)
_AFTER_EXCLUDED = re.compile(
    r"[?!.;,，。？；]|\b(?:that|which|who|is|are|do|does|we|i)\b|以外|之外"
)


@dataclass(frozen=True, slots=True)
class Topics:
    """The content words of each topic, and those of names that the question excludes."""

    words: tuple[tuple[ContentWord, ...], ...]
    excluded: tuple[ContentWord, ...] = ()


NO_TOPICS = Topics(())


def topics(question: str) -> Topics:
    """Return the topics of a question; none if it asks about nothing in particular."""
    # One blank between words: the patterns take the square of a run of blanks.
    text, excluded = _without_excluded(" ".join(question.split()))
    parts: list[tuple[ContentWord, ...]] = []
    names: list[ContentWord] = []
    for clause in filter(None, map(str.strip, _CLAUSES.split(text))):
        words = content_words(clause)
        if words and not _PRONOUNS.isdisjoint(clause.lower().split()):
            known = {word.terms for word in words}
            words = [name for name in names if name.terms not in known] + words
        elif words:
            names = [word for word in words if word.is_name]
        parts += _listed(clause, words)
    if len(parts) > MOST_TOPICS:
        rest = dict.fromkeys(word for part in parts[MOST_TOPICS - 1 :] for word in part)
        parts[MOST_TOPICS - 1 :] = [tuple(rest)[:MOST_WORDS]]
    return Topics(tuple(dict.fromkeys(parts)), tuple(excluded))


def _without_excluded(question: str) -> tuple[str, list[ContentWord]]:
    """Cut out what the question excludes; nothing if nothing else is left to ask about."""
    match = _EXCLUDED.search(question)
    if match is None:
        return question, []
    end = _AFTER_EXCLUDED.search(question, match.end())
    to = end.start() if end else len(question)
    rest = f"{question[: match.start()]} {question[to:]}"
    excluded = content_words(question[match.end() : to])
    return (rest, excluded) if content_words(rest) else (question, [])


def _listed(clause: str, words: Sequence[ContentWord]) -> Iterator[tuple[ContentWord, ...]]:
    """Yield the words of each member of a list in the clause, with the words around the list."""
    groups = _groups(clause, words)
    members = next((group for group in groups if len(group) > 1), None)
    if members is None:
        if words:
            yield tuple(words)
        return
    listed = {word.terms for member in members for word in member}
    for member in members:
        own = {word.terms for word in member}
        yield tuple(word for word in words if word.terms in own or word.terms not in listed)


def _groups(clause: str, words: Sequence[ContentWord]) -> list[list[list[ContentWord]]]:
    """Group the words: runs of adjacent words, and in one group the runs that are a list."""
    groups: list[list[list[ContentWord]]] = []
    end = 0
    for word in words:
        start = clause.find(word.text, end)
        if start < 0:  # a word of the clause before, or one between removed characters
            groups.append([[word]])
            continue
        between, end = clause[end:start], start + len(word.text)
        if groups and between.isspace():
            groups[-1][-1].append(word)
        elif groups and _CONNECTED.fullmatch(between):
            groups[-1].append([word])
        else:
            groups.append([[word]])
    return [_names_only(group) for group in groups]


def _names_only(group: list[list[ContentWord]]) -> list[list[ContentWord]]:
    """Take the names alone from a list that begins with names: "Ana's and Leo's allergies"."""
    if len(group) < 2 or not _capital(group[0][-1]) or not _capital(group[1][0]):
        return group
    first = [word for word in group[0] if _capital(word)]
    return [first, *([word for word in run if _capital(word)] or run for run in group[1:])]


def _capital(word: ContentWord) -> bool:
    return _POSSESSIVE.sub("", word.text)[:1].isupper()
