"""How signals become one score: pure, documented, the same for every store.

    base    =   DENSE · semantic + LEXICAL · lexical + SPEAKER · speaker + DATE · date
              + RECENCY · recency + GRAPH · graph
    heard   =   base + BEFORE · best base of the turn before + AFTER · best base of the turn after
    fused   =   heard + SESSION · mean of the three best heard of its session
    score   =   1 - exp(-STEEP · fused / what a full answer gets that stands alone)

A full answer has every signal that the question gives: a question without a date has no date term
to earn. So a text that repeats the question scores 0.97, company lifts it further, and the order is
that of `fused`. A score does not depend on what else was found but for its neighbours and its
session. An answer rarely repeats the question's words: the turn before it does.
Both channels bring candidates: what only keywords find must be able to appear.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

# A candidate is named by any value that has an order.
Key = TypeVar("Key", bound=Any)

# How many of a session's best count as what the session is about.
SESSION_BEST = 3


@dataclass(frozen=True, slots=True)
class Weights:
    """What each term counts for. Source: the anchor recipe on LoCoMo, recall@10 without the term
    against 79.1 with all: dense 75.2, lexical 59.8, speaker 75.7, date 77.7, neighbours 75.8,
    session 75.9. Recency and graph are off: neither earned anything there.
    """

    dense: float = 0.5
    """Similarity in meaning."""
    lexical: float = 0.5
    """Share of the query's words in the text (BM25)."""
    speaker: float = 0.3
    """Said by the one person that the query names."""
    date: float = 0.3
    """Said at the time that the query names."""
    before: float = 0.2
    """Best score of the turn before it."""
    after: float = 0.1
    """Best score of the turn after it."""
    session: float = 0.6
    """Mean of the three best scores of its session."""
    recency: float = 0.0
    """Age; halves every 30 days."""
    graph: float = 0.0
    """A relation of a name in the query leads to it."""

    def __post_init__(self) -> None:
        if negative := [field.name for field in fields(self) if getattr(self, field.name) < 0]:
            raise ValueError(f"A weight cannot be negative: {', '.join(negative)}.")

    def full(self, given: Collection[str]) -> float:
        """What an answer gets that has all of these signals and stands alone."""
        own = sum(getattr(self, term) for term in OWN if term in given)
        return float(own * (1 + self.session / SESSION_BEST))


# The terms a candidate earns by itself.
OWN = ("dense", "lexical", "speaker", "date", "recency", "graph")
# A full answer alone scores 0.97, a fifth of it 0.5.
STEEP = 3.5


# Tuples, as there are hundreds of each in a search: frozen dataclasses take four times as long.


class Place(NamedTuple):
    """Where something was said: its turn, the turns beside it, and the session of them all."""

    turn: Hashable
    session: Hashable
    before: Hashable | None = None


class Signals(NamedTuple):
    """What is known of one candidate, each 0..1; no `place` for what nobody said.

    `semantic` is the cosine; `calibrated` the same on the scale of thresholds, see
    pipeline.search.calibration, which no part of the fusion uses. None: it is the cosine.
    """

    semantic: float = 0.0
    lexical: float = 0.0
    speaker: float = 0.0
    date: float = 0.0
    recency: float = 0.0
    graph: float = 0.0
    place: Place | None = None
    calibrated: float | None = None


class Score(NamedTuple):
    """`total`, 0..1, is what clients see of `fused`, the weighted sum that ranks. `beside` and
    `session`: what the turns beside it and its session add to that.

    `reranked`, 0..1, is what a reranker said of it where one was asked: no part of the total.
    """

    total: float
    signals: Signals
    weights: Weights
    beside: float
    session: float
    reranked: float | None = None
    fused: float = 0.0

    @property
    def semantic(self) -> float:
        """On the scale of thresholds."""
        signals = self.signals
        return signals.semantic if signals.calibrated is None else signals.calibrated

    @property
    def lexical(self) -> float:
        return self.signals.lexical

    @property
    def shares(self) -> dict[str, float]:
        """What each term adds: they sum to the total."""
        own = {term: getattr(self.weights, term) * self._signal(term) for term in OWN}
        added = own | {"neighbours": self.beside, "session": self.session}
        scale = self.total / self.fused if self.fused else 0.0
        return {term: share * scale for term, share in added.items()}

    def _signal(self, term: str) -> float:
        signal: float = getattr(self.signals, "semantic" if term == "dense" else term)
        return signal


def fuse(
    candidates: Mapping[Key, Signals], weights: Weights, given: Collection[str] = OWN
) -> dict[Key, Score]:
    """The score of every candidate. `given`: the terms that the question has signals for.

    The steps pass lists in the order of the candidates: to look one up by its key costs more than
    to score it.
    """
    base = _base(candidates.values(), weights)
    places = [signals.place for signals in candidates.values()]
    beside = _beside(base, places, weights)
    heard = [own + near for own, near in zip(base, beside, strict=True)]
    by_session = _sessions(heard, places)
    sessions = [weights.session * by_session[place.session] if place else 0.0 for place in places]
    full = weights.full(given) or 1.0
    scores = {}
    for (key, signals), own, near, session in zip(
        candidates.items(), heard, beside, sessions, strict=True
    ):
        fused = own + session
        total = -math.expm1(-STEEP * fused / full)
        scores[key] = Score(total, signals, weights, near, session, None, fused)
    return scores


def ranked(scores: Mapping[Key, Score]) -> list[Key]:
    """Best first; equal scores by key, so that the same question has the same answer."""
    return sorted(scores, key=lambda key: (-scores[key].fused, key))


def _base(candidates: Iterable[Signals], weights: Weights) -> list[float]:
    """The weighted sum of each candidate's own signals."""
    return [
        weights.dense * signals.semantic
        + weights.lexical * signals.lexical
        + weights.speaker * signals.speaker
        + weights.date * signals.date
        + weights.recency * signals.recency
        + weights.graph * signals.graph
        for signals in candidates
    ]


def _beside(base: Sequence[float], places: Sequence[Place | None], weights: Weights) -> list[float]:
    """What the turns before and after add; a turn counts by the best said in it."""
    turns: dict[Hashable, float] = defaultdict(float)
    after: dict[Hashable, Hashable] = {}
    for place, own in zip(places, base, strict=True):
        if place is not None:
            turns[place.turn] = max(turns[place.turn], own)
            if place.before is not None:
                after[place.before] = place.turn
    return [
        weights.before * turns.get(place.before, 0.0)
        + weights.after * turns.get(after.get(place.turn), 0.0)
        if place is not None
        else 0.0
        for place in places
    ]


def _sessions(heard: Sequence[float], places: Sequence[Place | None]) -> dict[Hashable, float]:
    """How well each session answers: the mean of its best."""
    by_session: dict[Hashable, list[float]] = defaultdict(list)
    for place, score in zip(places, heard, strict=True):
        if place is not None:
            by_session[place.session].append(score)
    return {session: _mean_of_best(scores) for session, scores in by_session.items()}


def _mean_of_best(values: Sequence[float]) -> float:
    # Always divided by all three, so that one more in a session never takes from it.
    return sum(sorted(values, reverse=True)[:SESSION_BEST]) / SESSION_BEST
