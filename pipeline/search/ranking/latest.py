"""Latest first: of results that state the same thing at different times, the last one comes first.

    Deploys go to Heroku.      said in March    0.92
    Deploys go to Fly.         said in June     0.90    comes first

Where nothing says which of two statements holds (no slot, no decision of a model), the later one
does. A result moves only before one that it is a version of: of the same speaker, about the same
slot or in mostly the same words, and with about the same score and share of the question's words.
Messages of a dialogue need the same slot: people say the same words about different things.
So a question that names the older value still finds that one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.domain.memories import Memory
from pipeline.domain.passages import PassageKey, Turn
from pipeline.search.candidates import Score
from pipeline.text import terms
from pipeline.text.statements import slots
from pipeline.text.times.past import is_past

# Least share of the earlier one's score, most that the share of the question's words may be below
# it, and number of the first results that are compared.
# Source: tests/unit/search/ranking/test_latest.py.
NEAR_EQUAL, FEWER_WORDS, COMPARED = 0.75, 0.1, 30
# Letters of a text that are compared: longer texts are no versions of one statement.
LETTERS = 400
# Least share of the shorter text's words that both have, and least number of them.
SAME_WORDS, LEAST_WORDS = 0.5, 2


@dataclass(frozen=True, slots=True)
class Hit:
    """A result. `around`: the turns before and after it, oldest first.

    `in_dialogue`: it is a message as it was said in a session with several speakers.
    """

    key: PassageKey
    passage: Memory | Turn
    score: Score
    around: Sequence[Turn] = ()
    in_dialogue: bool = False


def latest_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, each behind its later versions. Scores keep the order."""
    first, rest = list(hits[:COMPARED]), hits[COMPARED:]
    ordered: list[Hit] = []
    while first:
        head = first[0]
        versions = [hit for hit in first[1:] if _follows(head, hit)]
        last = max(versions, key=lambda hit: hit.passage.said_at, default=head)
        first.remove(last)
        ordered.append(last if last is head else _raised(last, head.score))
    return [*ordered, *rest]


def _follows(earlier: Hit, later: Hit) -> bool:
    """Tell if a hit is a later version of another one, and answers the question as well."""
    first, other = earlier.passage, later.passage
    if not isinstance(first, Memory) or not isinstance(other, Memory):
        return False
    if other.said_at <= first.said_at or other.valid_from < first.valid_from:
        return False
    near = later.score.decayed >= NEAR_EQUAL * earlier.score.decayed
    if not near or later.score.lexical < earlier.score.lexical - FEWER_WORDS:
        return False
    if other.valid_from > other.said_at or first.speaker != other.speaker:
        return False
    if first.slot and other.slot:
        known = other.cardinality or first.cardinality
        is_version = first.slot == other.slot and not slots.many_valued(first.slot, known)
    else:
        dialogue = earlier.in_dialogue or later.in_dialogue
        is_version = not dialogue and _mostly_same(first.text, other.text)
    return is_version and (is_past(first.text) or not is_past(other.text))


def _mostly_same(text: str, other: str) -> bool:
    """Tell if two texts have most words of the shorter one in common."""
    words, others = _words(text), _words(other)
    common = len(words & others)
    return common >= LEAST_WORDS and common >= SAME_WORDS * min(len(words), len(others))


@lru_cache(maxsize=256)  # a hit is compared with several others
def _words(text: str) -> frozenset[str]:
    return frozenset(terms.query_terms(text[:LETTERS]))


def _raised(hit: Hit, least: Score) -> Hit:
    """The hit with at least this score."""
    fused = least.decayed / (hit.score.decay or 1.0)
    return replace(hit, score=hit.score._replace(fused=max(hit.score.fused, fused)))
