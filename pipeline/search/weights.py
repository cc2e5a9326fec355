"""Weights of the terms of a search score; the formula is in pipeline/search/ranking/fusion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

# Number of a session's best candidates that count.
SESSION_BEST = 3
# Share of the best candidate in the session term of a dialogue; the rest is the mean. Factor of a
# turn before that is a question.
BEST, ANSWERING = 0.8, 2.0
# Share that a word keeps in the window of the turn beside its own, and of each further one.
FADING = 0.7
# The terms of a candidate's own signals.
OWN = ("dense", "lexical", "speaker", "date", "recency", "graph", "chain")


@dataclass(frozen=True, slots=True)
class Weights:
    """Factor of each term.

    Source: the anchor recipe on LoCoMo, recall@10 without the term, compared with 79.1 with all:
    dense 75.2, lexical 59.8, speaker 75.7, date 77.7, neighbours 75.8, session 75.9. Recency is 0,
    because it improved nothing there. Graph: of 40 questions of two and three hops among 40 other
    memories, all memories of the path are in the first three for 34 without the term and for 39
    with it; 230 plain questions of the same users keep their answers. Chain: of 60 questions of two
    and three hops in towns of 40 and 60 people, all memories of the path are among the first five
    for 10 without the term and for 59 with it (tests/eval/paths).

    Turns further away, the best of a session, the length of a message and questions were trained by
    random search on 709 questions of five conversations of LoCoMo: recall@10 80.2 -> 82.6, of
    questions with several answers 50.3 -> 56.4. The window's share, its fading and its two turns
    were chosen by hand on the same questions, and measured on no others. See docs/howto/search.md.
    """

    dense: float = 0.5
    """Similarity in meaning."""
    lexical: float = 0.5
    """Share of the query's words in the text (BM25)."""
    speaker: float = 0.3
    """Written by the one person that the query names."""
    date: float = 0.3
    """Written at the time that the query names."""
    before: float = 0.2
    """Best score of the turn before it."""
    after: float = 0.15
    """Best score of the turn after it."""
    further: float = 0.1
    """Best scores of the turn before the last one, and of the turn after the next one."""
    window: float = 0.2
    """Share of the query's words in a message of a dialogue with two turns on each side."""
    session: float = 0.6
    """Mean of the three best scores of its session; in a dialogue mostly the best one."""
    recency: float = 0.0
    """Age; halves every 30 days."""
    graph: float = 0.5
    """Share of the query that a path of the graph with its relation accounts for."""
    chain: float = 1.5
    """On the path of several relations that the query describes."""

    def __post_init__(self) -> None:
        if negative := [field.name for field in fields(self) if getattr(self, field.name) < 0]:
            raise ValueError(f"A weight cannot be negative: {', '.join(negative)}.")

    def full(self, terms: Collection[str]) -> float:
        """Return the fused score of a candidate with all of these signals and no neighbours."""
        own = sum(getattr(self, term) for term in OWN if term in terms)
        return float(own * (1 + self.session / SESSION_BEST))
