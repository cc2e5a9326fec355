"""Fusion: signals become one score. Pure functions, the same for every store.

    base    =   DENSE · semantic + LEXICAL · lexical + SPEAKER · speaker + DATE · date
              + RECENCY · recency + GRAPH · graph + CHAIN · chain
    beside  =   BEFORE · best base of the turn before, twice for a question
              + AFTER · best base of the turn after + FURTHER · those of the turns beside these two
    fused   =   substance · base + beside + WINDOW · window
              + SESSION · mean of the three best base + beside of its session
                in a dialogue: 0.8 · best + 0.2 · mean
    score   =   1 - exp(-STEEP · fused · decay / fused of a full answer that stands alone)

The window of a message in a dialogue is the share of the query's words, by rarity, that it has
together with the two turns before and after it; a word counts once, and less if it is further away.
Speakers do not repeat in an answer what was said before it, so the words of a question are spread
over a few turns.

A full answer has every signal that the query gives: for a query without a date, the date term is
left out. So a text that repeats the query scores 0.97; its neighbours and its session can raise it
further, and the order is that of `fused · decay`; the decay is 1 unless the project has decay. The
substance of a message in a dialogue is larger if it is long, and smaller if it is a question. A
score depends only on candidates of the same session. Neighbours count because an answer rarely
repeats the words of a question, but the turn before it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from pipeline.search.candidates import Candidate, Place, Score
from pipeline.search.weights import ANSWERING, BEST, FADING, OWN, SESSION_BEST, Weights


def fuse(
    candidates: Sequence[Candidate], weights: Weights, terms: Collection[str] = OWN
) -> list[Candidate]:
    """Score the candidates and return them best first; equal scores are ordered by key.

    `terms`: the terms that the query has signals for.
    """
    # Lists in the order of the candidates: a look-up by key costs more than computing a score.
    base = _base(candidates, weights)
    beside = _beside(candidates, base, weights)
    windows = _windows(candidates) if weights.window else [0.0] * len(candidates)
    heard = [own + near for own, near in zip(base, beside, strict=True)]
    means = _session_means(candidates, heard)
    full = weights.full(terms) or 1.0
    together = [near + weights.window * of for near, of in zip(beside, windows, strict=True)]
    for candidate, own, near in zip(candidates, base, together, strict=True):
        place = candidate.place
        session = weights.session * means[place.session] if place else 0.0
        fused = candidate.substance * own + near + session
        score = Score(candidate.signals, weights, fused, near, session, full)
        candidate.score = score._replace(decay=candidate.decay) if candidate.decay else score
    return sorted(candidates, key=_rank)


def _rank(candidate: Candidate) -> tuple[float, int, int]:
    # The id as a number: ids compare slowly, and equal scores are common.
    return -candidate.score.decayed, candidate.key.id.int, candidate.key.ordinal


def _base(candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """The weighted sum of each candidate's own signals."""
    dense, lexical = weights.dense, weights.lexical
    others = (weights.speaker, weights.date, weights.recency, weights.graph, weights.chain)
    speaker, date, recency, graph, chain = others
    return [
        dense * signals[0]
        + lexical * signals[1]
        + speaker * signals[2]
        + date * signals[3]
        + recency * signals[4]
        + graph * signals[5]
        + chain * signals[6]
        for signals in [candidate.signals for candidate in candidates]
    ]


def _beside(
    candidates: Sequence[Candidate], base: Sequence[float], weights: Weights
) -> list[float]:
    """Return each candidate's part from the two turns before and the two after it.

    A turn counts by its best candidate.
    """
    best: dict[Hashable, float] = {}
    before: dict[Hashable, Hashable] = {}
    after: dict[Hashable, Hashable] = {}
    questions = set()
    for candidate, own in zip(candidates, base, strict=True):
        if (place := candidate.place) is None:
            continue
        if own > best.get(place.turn, 0.0):
            best[place.turn] = own
        if place.before is not None:
            before[place.turn], after[place.before] = place.before, place.turn
        if candidate.is_question:
            questions.add(place.turn)

    def part(place: Place) -> float:
        last, following = place.before, after.get(place.turn)
        further = best.get(before.get(last), 0.0) + best.get(after.get(following), 0.0)
        factor = ANSWERING if last in questions else 1.0
        return (
            factor * weights.before * best.get(last, 0.0)
            + weights.after * best.get(following, 0.0)
            + weights.further * further
        )

    return [0.0 if each.place is None else part(each.place) for each in candidates]


def _windows(candidates: Sequence[Candidate]) -> list[float]:
    """Return the window of each message of a dialogue; 0 for other candidates."""
    rows: dict[Hashable, int] = {}  # one for each turn: several candidates can be of one
    own = [
        rows.setdefault(place.turn, len(rows)) if place and place.dialogue else None
        for place in [each.place for each in candidates]
    ]
    placed = [each for each, row in zip(candidates, own, strict=True) if row is not None]
    words = list(chain.from_iterable(each.words for each in placed))
    if not words:
        return [0.0] * len(candidates)
    # In an order of their own: a sum of floats depends on it, and a score must not.
    columns = {word: number for number, word in enumerate(sorted(set(words)))}
    placed_rows = [row for row in own if row is not None]
    row_of = np.repeat(placed_rows, [len(each.words) for each in placed])
    column_of = np.array([columns[word] for word in words])
    parts = list(chain.from_iterable(each.parts for each in placed))
    shares = np.zeros((len(rows) + 1, len(columns)))  # the last row is that of no candidate
    np.maximum.at(shares, (row_of, column_of), parts)
    before, after = _rows_beside(placed, rows)
    near = np.maximum(shares[before], shares[after])
    further = np.maximum(shares[before[before]], shares[after[after]])
    together = np.maximum(shares, np.maximum(FADING * near, FADING**2 * further))
    windows = np.minimum(together.sum(axis=1), 1.0).tolist()
    return [
        0.0 if row is None or each.has_subject else windows[row]
        for each, row in zip(candidates, own, strict=True)
    ]


def _rows_beside(
    placed: Sequence[Candidate], rows: Mapping[Hashable, int]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows of the turns before and after the turn of each row; else the last row."""
    nothing = len(rows)
    before, after = [nothing] * (nothing + 1), [nothing] * (nothing + 1)
    for candidate in placed:
        if candidate.place and (last := rows.get(candidate.place.before)) is not None:
            row = rows[candidate.place.turn]
            before[row], after[last] = last, row
    return np.array(before), np.array(after)


def _session_means(
    candidates: Sequence[Candidate], heard: Sequence[float]
) -> dict[Hashable, float]:
    """Return the mean of the three best scores of each session; in a dialogue mostly the best.

    It is always divided by three, so another candidate in a session never lowers the mean.
    """
    by_session: dict[Hashable, list[float]] = defaultdict(list)
    dialogues = set()
    for candidate, score in zip(candidates, heard, strict=True):
        if candidate.place is not None:
            by_session[candidate.place.session].append(score)
            if candidate.place.dialogue:
                dialogues.add(candidate.place.session)
    means = {}
    for session, scores in by_session.items():
        best = sorted(scores, reverse=True)[:SESSION_BEST]
        mean = sum(best) / SESSION_BEST
        means[session] = BEST * best[0] + (1 - BEST) * mean if session in dialogues else mean
    return means
