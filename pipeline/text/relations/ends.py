"""Statements that say that a relation is over, and nothing else: "Hana left the Red Foxes".

    said_ends("User sold the Brompton.")           owns, of "User" and "Brompton"
    said_ends("User sold the Brompton for Tom.")   owns, of "User" and "Brompton for Tom"
    said_ends("User sold the Brompton to Tom.")    owns, of "User" and "Brompton", to "Tom"

No model reads the statement, and the relation arrives after it. So the whole statement must have
one of the forms in words/ends.txt, and the caller compares both names as they stand: "Hana almost
left the Red Foxes" is about "Hana almost". Words behind the name are a part of it, except a date
with its year. A form ends its own relations only. In doubt there is no end:

    sold books             only some of them, perhaps: what is sold needs a definite article
    left the office        a way home: what is left needs a proper name, behind an article one of
    left the Louvre        several words, without the word of a place ("Hotel", "Club")
    gave the keys to Tom   a loan, perhaps: Tom must own them since then, which the caller checks

A place with a name like that of a firm ("left Starbucks", "left Mercy General") is taken for one:
a known risk. English, German, Spanish and Chinese; other languages have no form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pipeline.text.times.dates import MONTHS, Span, any_of, spans
from pipeline.text.word_lists import lines_of, words_in, words_of

# Longest statement that is read, in characters: a longer one says more than an end.
MOST_CHARS = 200

_ARTICLE = r"(?:the|der|die|das|den|dem|el|la|los|las)"
# An indefinite article: the statement does not say which one is meant.
_ANY = r"(?:an?|eine?[mnr]?|une?|una?)"
# A word without a small first letter.
_PROPER = r"(?-i:[^\W\d_a-zß-ÿ])\S*?"
_PARTS = {
    "S": r"(?P<source>.+?)",
    "D": rf"(?:{_ARTICLE} )?(?!{_ANY} )(?P<destination>.+?)",
    "ARTICLE D": rf"{_ARTICLE} (?P<destination>.+?)",
    "ARTICLE": _ARTICLE,
    # A proper name of at most three words.
    "B": rf"(?P<owner>{_PROPER}(?: {_PROPER}){{0,2}})",
    "NAME": rf"(?P<article>{_ARTICLE} )?(?P<destination>.+?)",
    "MORE": r"any(?: ?more| longer)",
}
# Words of places that a person leaves every day, in a name.
_PLACES = words_in("daily_places.txt")
_BETWEEN = words_of("and da das de del der des di do dos of la le los und van von y")


class SaidEnd(NamedTuple):
    """An end of one of the relations between two names.

    `when`: the date that the words give. `owner`: the person to whom the destination goes.
    """

    relations: tuple[str, ...]
    source: str
    destination: str
    when: Span | None
    owner: str | None = None


def _read(file: str) -> Iterator[tuple[tuple[str, ...], re.Pattern[str]]]:
    """Yield each form of a file in words/ with its relations."""
    relations: tuple[str, ...] = ()
    for line in lines_of(file):
        if line.startswith(" "):
            form = re.sub(
                "MORE|NAME|ARTICLE D|ARTICLE|[SDB]", lambda word: _PARTS[word[0]], line.strip()
            )
            # In a title, "Left Work", capitals tell no names apart.
            yield relations, re.compile(form, 0 if "NAME" in line else re.IGNORECASE)
        else:
            relations = tuple(line.split())


FORMS = tuple(_read("ends.txt"))
# Relations that a statement can end.
ENDABLE = frozenset(name for relations, _ in FORMS for name in relations)
# Questions, and marks between clauses.
_NO_STATEMENT = re.compile(r"[?¿？,，;；:：]")
_DAY = r"[0-3]?\d(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:19|20)\d\d"
_DATED = re.compile(
    rf" \(?(?:(?:on|in|am|im|el|en) )?(?P<date>{_YEAR}-[01]\d(?:-[0-3]\d)?"
    rf"|(?:{_DAY}(?: of| de)? )?(?:{any_of(MONTHS)})(?: {_DAY},?)?,?(?: of| del?)? {_YEAR})\)?$",
    re.IGNORECASE,
)
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def said_ends(text: str) -> list[SaidEnd]:
    """The ends that a statement may say, one for each form that it has."""
    if len(text) > MOST_CHARS:
        return []
    words, when = _without_date(" ".join(text.split()).rstrip(".!。！ "))
    if _NO_STATEMENT.search(words):
        return []
    matches = ((relations, form.fullmatch(words)) for relations, form in FORMS)
    return [
        SaidEnd(
            relations, match["source"], match["destination"], when, match.groupdict().get("owner")
        )
        for relations, match in matches
        if match is not None and _is_definite(match)
    ]


def _is_definite(match: re.Match[str]) -> bool:
    """False if a form asks for a proper name, and the destination is none or may be a place."""
    if "article" not in match.re.groupindex:
        return True
    words = [word for word in match["destination"].split() if word not in _BETWEEN]
    if any(word.lower() in _PLACES or word.endswith(("'s", "’s")) for word in words):
        return False
    least = 2 if match["article"] else 1
    return len(words) >= least and all(word[0].isupper() for word in words)


def _without_date(words: str) -> tuple[str, Span | None]:
    """A statement without the date at its end, and that date: a day or a month of a year."""
    match = _DATED.search(words)
    named = spans(match["date"].lower(), _ANY_DAY) if match else ()
    if match is None or len(named) != 1 or named[0].any_year:
        return words, None
    return words[: match.start()], named[0]
