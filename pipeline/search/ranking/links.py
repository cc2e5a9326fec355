"""Links: facts about a thing that an answer names, which the question does not name.

    "Which till is used?"    The shop uses a SumUp till            the answer
                             SumUp takes 1.4 % of every payment    linked: it has the name

A fact is linked to an answer if it has a name that the answer has too, and that hardly any other
candidate has: the name of the user links nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from pipeline.domain.passages import PassageKey
from pipeline.search.candidates import Candidate
from pipeline.search.ranking.cutoff import SURE
from pipeline.search.ranking.latest import Hit
from pipeline.text import terms
from pipeline.text.questions import is_time_term
from pipeline.text.statements.values import ValueKind, stated

# Most candidates that have the name, which are the answer and the fact, and most linked facts.
# Source: tests/eval/beliefs.
MOST_WITH_NAME, MOST_LINKED = 2, 3
# Letters of a text in which its opening name ends, and of an answer that are searched for it.
OPENING, LETTERS = 80, 1_000
# Terms of a candidate that are compared, and candidates whose texts are read for the name.
MOST_TERMS, MOST_READ = 200, 20
_ARTICLE = re.compile(r"^(?:the|der|die|das|el|la|los|las)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Near(NamedTuple):
    """A candidate, and its terms that a sure answer has and hardly any other text."""

    candidate: Candidate
    terms: frozenset[str]


def near_answers(
    question: str, answers: Sequence[Candidate], candidates: Sequence[Candidate]
) -> list[Near]:
    """Return the candidates with a term of a sure answer that hardly any other text has.

    Not if it is in the question: then the evidence has compared it.
    """
    in_question = set(terms.query_terms(question))
    returned = {answer.key for answer in answers}
    sure = [
        set(answer.terms[:MOST_TERMS])
        for answer in answers
        if (answer.score.evidence or 0.0) >= SURE
    ]
    if not sure:
        return []
    holding = Counter(
        term for candidate in candidates for term in set(candidate.terms[:MOST_TERMS])
    )
    rare = frozenset(
        term
        for term in set().union(*sure) - in_question
        if holding[term] <= MOST_WITH_NAME and not is_time_term(term)
    )
    near = (
        Near(candidate, rare.intersection(candidate.terms[:MOST_TERMS]))
        for candidate in candidates
        if candidate.key not in returned and not candidate.score.excluded
    )
    return list(islice((each for each in near if each.terms), MOST_READ))


def with_links(
    hits: Sequence[Hit],
    best: Sequence[Candidate],
    near: Sequence[Near],
    ranked: Sequence[Candidate],
) -> list[Hit]:
    """The hits of the best candidates and of those linked to them, in the order of the ranking."""
    by_key = {hit.key: hit for hit in hits}
    texts = {key: hit.passage.text for key, hit in by_key.items()}
    keys = {candidate.key for candidate in [*best, *linked(best, near, texts)]}
    return [by_key[c.key] for c in ranked if c.key in keys and c.key in by_key]


def linked(
    answers: Sequence[Candidate],
    near: Sequence[Near],
    texts: Mapping[PassageKey, str],
) -> list[Candidate]:
    """Return those of the near candidates that are linked to an answer, by their texts."""
    named = [texts[answer.key] for answer in answers if answer.key in texts]
    return [
        candidate
        for candidate, rare in near
        if candidate.key in texts
        and any(
            opens_with(texts[candidate.key], text) or names(texts[candidate.key], text, rare)
            for text in named
        )
    ][:MOST_LINKED]


def opens_with(text: str, answer: str) -> bool:
    """Tell if a text opens with a name that the answer has: all of its words, with a capital."""
    name = _opening_name(text)
    return bool(name) and set(name).issubset(_capitals(answer[:LETTERS]))


def names(text: str, answer: str, rare: Set[str]) -> bool:
    """Tell if a text has a name that the answer has, with a term that is rare."""
    capitals = set(_capitals(answer[:LETTERS]))
    named = (terms.terms(value.text) for value in stated(text[:LETTERS]).of(ValueKind.NAME))
    return any(capitals.issuperset(name) and not rare.isdisjoint(name) for name in named)


def _opening_name(text: str) -> list[str]:
    """The terms of the words with a capital that a text opens with, behind an article."""
    opening = _ARTICLE.sub("", text[:OPENING].lstrip())
    name: list[str] = []
    end = 0
    for match in _WORD.finditer(opening):
        if not match[0][0].isupper() or opening[end : match.start()].strip(" .&"):
            break
        name += terms.terms(match[0])
        end = match.end()
    return [] if all(is_time_term(term) for term in name) else name


def _capitals(text: str) -> list[str]:
    """The terms of all words of a text with a capital."""
    words = (match[0] for match in _WORD.finditer(text))
    return [term for word in words if word[0].isupper() for term in terms.terms(word)]
