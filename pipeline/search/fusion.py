"""Fusion: signals become one score. Pure functions, the same for every store.

    base    =   DENSE · semantic + LEXICAL · lexical + SPEAKER · speaker + DATE · date
              + RECENCY · recency + GRAPH · graph
    heard   =   base + BEFORE · best base of the turn before + AFTER · best base of the turn after
    fused   =   heard + SESSION · mean of the three best heard of its session
    score   =   1 - exp(-STEEP · fused · decay / fused of a full answer that stands alone)

A full answer has every signal that the query gives: for a query without a date, the date term is
left out. So a text that repeats the query scores 0.97; its neighbours and its session can raise it
further, and the order is that of `fused · decay`; the decay is 1 unless the project has decay. A
score depends only on candidates of the same session. Neighbours count because an answer rarely
repeats the words of a question, but the turn before it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence

from pipeline.search.candidates import Candidate, Score
from pipeline.search.weights import OWN, SESSION_BEST, Weights


def fuse(
    candidates: Sequence[Candidate], weights: Weights, terms: Collection[str] = OWN
) -> list[Candidate]:
    """Score the candidates and return them best first; equal scores are ordered by key.

    `terms`: the terms that the query has signals for.
    """
    # Lists in the order of the candidates: a look-up by key costs more than computing a score.
    base = _base(candidates, weights)
    beside = _beside(candidates, base, weights)
    heard = [own + near for own, near in zip(base, beside, strict=True)]
    means = _session_means(candidates, heard)
    full = weights.full(terms) or 1.0
    for candidate, own, near in zip(candidates, heard, beside, strict=True):
        place = candidate.place
        session = weights.session * means[place.session] if place else 0.0
        score = Score(candidate.signals, weights, own + session, near, session, full)
        candidate.score = score._replace(decay=candidate.decay) if candidate.decay else score
    return sorted(candidates, key=_rank)


def _rank(candidate: Candidate) -> tuple[float, tuple[object, int]]:
    return -candidate.score.decayed, candidate.key


def _base(candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """The weighted sum of each candidate's own signals."""
    dense, lexical = weights.dense, weights.lexical
    others = (weights.speaker, weights.date, weights.recency, weights.graph)
    speaker, date, recency, graph = others
    return [
        dense * signals[0]
        + lexical * signals[1]
        + speaker * signals[2]
        + date * signals[3]
        + recency * signals[4]
        + graph * signals[5]
        for signals in [candidate.signals for candidate in candidates]
    ]


def _beside(
    candidates: Sequence[Candidate], base: Sequence[float], weights: Weights
) -> list[float]:
    """Return each candidate's part from the turns before and after it.

    A turn counts by its best candidate.
    """
    places = [candidate.place for candidate in candidates]
    best: dict[Hashable, float] = {}
    after: dict[Hashable, Hashable] = {}
    for place, own in zip(places, base, strict=True):
        if place is not None:
            turn, _, before = place
            if own > best.get(turn, 0.0):
                best[turn] = own
            if before is not None:
                after[before] = turn
    return [
        weights.before * best.get(place.before, 0.0)
        + weights.after * best.get(after.get(place.turn), 0.0)
        if place is not None
        else 0.0
        for place in places
    ]


def _session_means(
    candidates: Sequence[Candidate], heard: Sequence[float]
) -> dict[Hashable, float]:
    """Return the mean of the three best scores of each session.

    It is always divided by three, so another candidate in a session never lowers the mean.
    """
    by_session: dict[Hashable, list[float]] = defaultdict(list)
    for candidate, score in zip(candidates, heard, strict=True):
        if candidate.place is not None:
            by_session[candidate.place.session].append(score)
    return {
        session: sum(sorted(scores, reverse=True)[:SESSION_BEST]) / SESSION_BEST
        for session, scores in by_session.items()
    }
