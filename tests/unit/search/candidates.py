"""Candidates for the tests of ranking."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from pipeline.domain.passages import FACT, PassageKey
from pipeline.search.candidates import Candidate, Place, Score, Signals
from pipeline.search.weights import Weights

LANE = UUID(int=0)
NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)


def key(number: int, *, turn: bool = False) -> PassageKey:
    return PassageKey(UUID(int=number), 0 if turn else FACT)


def candidate(
    number: int,
    signals: Signals | None = None,
    place: Place | None = None,
    *,
    turn: bool = False,
    unembedded: bool = False,
) -> Candidate:
    """Candidate without a score."""
    result = Candidate(key(number, turn=turn), LANE, None, NOON)
    result.signals, result.place = signals or Signals(), place
    result.unembedded = unembedded
    return result


def scored(
    number: int,
    fused: float = 0.0,
    *,
    semantic: float = 0.0,
    lexical: float = 0.0,
    reranked: float | None = None,
    turn: bool = False,
    unembedded: bool = False,
) -> Candidate:
    """Candidate with this score."""
    signals = Signals(semantic, lexical)
    result = candidate(number, signals, turn=turn, unembedded=unembedded)
    result.score = Score(signals, Weights(), fused, reranked=reranked)
    return result
