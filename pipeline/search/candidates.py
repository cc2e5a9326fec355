"""Candidate: a passage on its way from a channel to the answer, and what each step adds to it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pipeline.domain.passages import PassageKey
from pipeline.search.weights import OWN, Weights

# Steepness of the score: a full answer alone scores 0.97, a fifth of it 0.5.
STEEP = 3.5


# Weights of a message's length and of a question, and the logarithm of the number of terms of a
# long message. Trained with the constants of weights.py.
BY_LENGTH, ASKING, FULL_LENGTH = 0.8, 0.3, math.log1p(40)


# Named tuples: a search makes hundreds of each, and a frozen dataclass takes four times as long.


class Place(NamedTuple):
    """Position in a conversation: the turn, the turn before it, and the session of both.

    `dialogue`: the session has several speakers.
    """

    turn: Hashable
    session: Hashable
    before: Hashable | None = None
    dialogue: bool = False


class Signals(NamedTuple):
    """Evidence for one candidate, each 0..1.

    `semantic` is the cosine. `calibrated` is the same on the scale of thresholds, see
    pipeline.search.ranking.calibration; the fusion does not use it. None: it is the cosine.
    """

    semantic: float = 0.0
    lexical: float = 0.0
    speaker: float = 0.0
    date: float = 0.0
    recency: float = 0.0
    graph: float = 0.0
    chain: float = 0.0
    calibrated: float | None = None


class Score(NamedTuple):
    """Result of the fusion.

    `fused` is the weighted sum that ranks, `full` its value for a full answer; `beside` and
    `session` are the parts from the neighbouring turns and from the session. `reranked`, 0..1, is
    the reranker's score, if there is one, and `evidence`, 0..1, the share of the question that the
    candidate accounts for by itself, if it was measured, and `by_topic` that of each topic of the
    question; they are no part of the total; nor is `closeness`, 0..1: how far the candidate is
    nearer to the query than the others. `excluded`: it has a name that the question excludes.
    `decay`: the factor of the candidate's age and accesses, if the project has decay.
    """

    signals: Signals
    weights: Weights
    fused: float = 0.0
    beside: float = 0.0
    session: float = 0.0
    full: float = 1.0
    reranked: float | None = None
    evidence: float | None = None
    decay: float | None = None
    closeness: float | None = None
    by_topic: tuple[float, ...] = ()
    excluded: bool = False

    @property
    def decayed(self) -> float:
        """The value that ranks: `fused` times the decay."""
        return self.fused if self.decay is None else self.fused * self.decay

    @property
    def total(self) -> float:
        """The score that clients see, 0..1; its order is that of `decayed`."""
        return -math.expm1(-STEEP * self.decayed / self.full)

    @property
    def semantic(self) -> float:
        """Similarity in meaning on the scale of thresholds, 0..1."""
        signals = self.signals
        return signals.semantic if signals.calibrated is None else signals.calibrated

    @property
    def lexical(self) -> float:
        """Share of the query's words, 0..1."""
        return self.signals.lexical

    @property
    def shares(self) -> dict[str, float]:
        """The part of each term in the total; their sum is the total."""
        signals = self.signals._asdict() | {"dense": self.signals.semantic}
        own = {term: getattr(self.weights, term) * signals[term] for term in OWN}
        # A message's own signals are multiplied by its substance.
        whole = sum(own.values())
        factor = (self.fused - self.beside - self.session) / whole if whole else 0.0
        own = {term: part * factor for term, part in own.items()}
        parts = own | {"neighbours": self.beside, "session": self.session}
        scale = self.total / self.fused if self.fused else 0.0
        return {term: part * scale for term, part in parts.items()}


NO_SIGNALS = Signals()
NO_SCORE = Score(NO_SIGNALS, Weights())


@dataclass(slots=True, eq=False)
class Candidate:
    """A passage that a channel proposed and the ledger has.

    The ledger gives the first nine values. `turn` and `before` are (seq, ordinal) in the lane: the
    turn of the passage, and the turn before that one; None without a turn. `embedding` is packed,
    and read only if the index gave no cosine, or for evidence, as are `terms`.
    `has_subject`: an extracted fact, which can be understood without the conversation. `length`:
    number of its terms; `is_question`: it is a message that ends with a question mark. `words`: the
    words of the query that it has, and `parts` the share of each in the rarity of all, 0..1.

    `place` is set by sessions, `signals` by signals, `score` by fusion, evidence and rerank, and
    `decay` only if the project has decay. `unembedded`: a turn without a vector so far, which only
    its words can find.
    """

    key: PassageKey
    lane_id: UUID
    speaker: str | None
    at: datetime
    turn: tuple[int, int] | None = None
    before: tuple[int, int] | None = None
    embedding: bytes | None = None
    terms: Sequence[str] = ()
    has_subject: bool = False
    length: int = 0
    is_question: bool = False
    words: Sequence[str] = ()
    parts: Sequence[float] = ()
    decay: float | None = None
    place: Place | None = None
    unembedded: bool = False
    signals: Signals = NO_SIGNALS
    score: Score = NO_SCORE

    @property
    def in_dialogue(self) -> bool:
        """True for a message as it was said in a session with several speakers."""
        return self.place is not None and self.place.dialogue and not self.has_subject

    @property
    def substance(self) -> float:
        """Factor of the own signals of a message in a dialogue, 0.3..1.4; 1 for any other passage.

        A long message answers more often than "Wow, great!", and a question rarely does.
        """
        if not self.in_dialogue:
            return 1.0
        length = min(1.0, math.log1p(self.length) / FULL_LENGTH)
        return 1 + BY_LENGTH * (length - 0.5) - ASKING * self.is_question
