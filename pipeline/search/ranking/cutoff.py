"""Cutoff: the ranked candidates that are returned: near enough, or with a word of the query.

    near     =   unembedded, or semantic ≥ threshold, or with `by_words` any word of the query,
                 or with `lenient` evidence that is sure, or with either on a chain of the graph
                 that the query describes
    strict   =   of these, those with enough evidence (see pipeline/search/ranking/evidence)
    first    =   the first top_k of the rest
    best     =   of these, with `lenient`, those that answer, or if that is not sure, those with a
                 sign of an answer (see `supported`)

If a reranker read the candidates, its scores count instead of the evidence: the better of two
classes is returned, and the boundary is computed from the scores themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pipeline.search.candidates import Candidate, Score

# Candidates that a reranker or a strict cut compares: per result, at least, and at most. A paid
# reranker counts the maximum as one search; its time grows with each candidate.
# Source: https://cohere.com/pricing (one search is a question with up to 100 documents)
TIMES, AT_LEAST, AT_MOST = 4, 20, 100


def compared_for(top_k: int) -> int:
    """The number of candidates that a reranker or a strict cut compares for this many results."""
    return min(AT_MOST, max(AT_LEAST, TIMES * top_k))


# Least evidence, and the least as a share of the best. Source: tests/eval/precision.
ENOUGH, OF_THE_BEST = 0.4, 0.8
# With this evidence, the default cut is sure of an answer; below NOTHING it knows nothing about the
# question and cuts nothing. Source: tests/eval/beliefs and tests/eval/precision.
SURE, NOTHING = 0.6, 0.25


@dataclass(frozen=True, slots=True)
class Signs:
    """Limits of the default cut.

    `words`: least share of the query's words that the best result has. `by_meaning`: number of the
    first results that are also returned for their meaning.
    """

    words: float
    by_meaning: int


# Source: docs/benchmarks/evaluation.md, "the default cut with other values".
SIGNS = Signs(words=0.5, by_meaning=3)


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Conditions on results. `threshold` is compared with the semantic score, 0..1."""

    top_k: int
    threshold: float = 0.0
    by_words: bool = False
    strict: bool = False
    lenient: bool = False

    def near(self, ranked: Sequence[Candidate]) -> Iterator[Candidate]:
        """The candidates that pass the threshold, best first."""
        threshold, by_words = self.threshold, self.by_words
        for candidate in ranked:
            score = candidate.score
            if (
                candidate.unembedded
                or ((self.lenient or by_words) and score.signals.chain > 0)
                or score.semantic >= threshold
                or (by_words and score.lexical > 0)
                or (self.lenient and (score.evidence or 0.0) >= SURE)
            ):
                yield candidate

    def passing(self, ranked: Sequence[Candidate]) -> Iterator[Candidate]:
        """Return all candidates that may be returned, best first."""
        if not self.strict:
            return self.near(ranked)
        near = list(self.near(ranked))
        if any(candidate.score.reranked is not None for candidate in near):
            return iter(standing_out(near, compared_for(self.top_k)))
        return iter(answering(near))

    def first(self, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Return the first top_k of the candidates that may be returned."""
        return list(islice(self.passing(ranked), self.top_k))

    def best(self, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Return the results, best first."""
        first = self.first(ranked)
        return supported(first) if self.lenient else first


def supported(results: Sequence[Candidate], signs: Signs = SIGNS) -> list[Candidate]:
    """Return the results that answer the query, or have a sign that they do, in the given order.

    If a result accounts for a topic of the query for sure, only those that do about as well answer
    it. For a topic without such a result, a sign is enough: half of the query's words that the best
    result has, or for one of the first three, a meaning nearer to the query than the other
    candidates'. If no result accounts for anything, all are returned: the query has other words
    than its answer.

    A result stays in any case if it dates from the time that the query names, has half of what the
    best path of the graph accounts for, is on a chain that the query describes, or is a part of a
    conversation, because the turns around it may answer: a turn, or a message as it was said in a
    session with several speakers.
    """
    best = _best_of_topics(results)
    if best and max(best) < NOTHING:
        return [result for result in results if not result.score.excluded]
    sure = bool(best) and min(best) >= SURE
    least = signs.words * max((result.score.lexical for result in results), default=0.0)
    least_of_path = signs.words * max(
        (result.score.signals.graph for result in results), default=0.0
    )
    best_chain = _best_chain(results)

    def is_supported(rank: int, result: Candidate) -> bool:
        score = result.score
        return (
            result.unembedded
            or score.signals.date > 0
            or score.signals.graph >= least_of_path > 0
            or _on_chain(score, best_chain)
            or result.key.is_turn
            or result.in_dialogue
            or _answers(score, best)
            or (not sure and score.lexical >= least > 0)
            or (not sure and rank < signs.by_meaning and score.closeness != 0)
        )

    return [
        result
        for rank, result in enumerate(results)
        if is_supported(rank, result) and not result.score.excluded
    ]


def answering(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with enough evidence, in the given order; possibly none.

    Without evidence, the query asks about nothing in particular: all are returned.
    """
    best, best_chain = _best_of_topics(candidates), _best_chain(candidates)
    return [
        candidate
        for candidate in candidates
        if (
            candidate.score.evidence is None
            or _answers(candidate.score, best)
            or _on_chain(candidate.score, best_chain)
        )
        and not candidate.score.excluded
    ]


def _best_chain(candidates: Sequence[Candidate]) -> float:
    return max((candidate.score.signals.chain for candidate in candidates), default=0.0)


def _on_chain(score: Score, best: float) -> bool:
    """Tell if a memory is on the best chain that the query describes, or one nearly as good."""
    return score.signals.chain >= OF_THE_BEST * best > 0


def _best_of_topics(candidates: Sequence[Candidate]) -> list[float]:
    """The best evidence for each topic of the query; empty if none was measured."""
    measured = [_by_topic(candidate.score) for candidate in candidates]
    return [max(values) for values in zip(*filter(None, measured), strict=True)]


def _answers(score: Score, best: Sequence[float]) -> bool:
    """Tell if the evidence for one of the topics is enough, beside the best."""
    pairs = zip(_by_topic(score), best, strict=False)
    return any(value >= max(ENOUGH, OF_THE_BEST * most) for value, most in pairs)


def _by_topic(score: Score) -> Sequence[float]:
    if score.by_topic or score.evidence is None:
        return score.by_topic
    return (score.evidence,)


def standing_out(candidates: Sequence[Candidate], compared: int) -> list[Candidate]:
    """Return those in the better class of the reranker's scores, in the given order.

    Candidates that the reranker did not read are left out; the best one never is. `compared`:
    number of the best scores from which the classes are computed.
    """
    scores = [
        (candidate, candidate.score.reranked)
        for candidate in candidates
        if candidate.score.reranked is not None
    ]
    first = sorted((score for _, score in scores), reverse=True)[:compared]
    # Fill up with zeros, like memories that are unrelated to the query.
    least = boundary([*first, *[0.0] * (compared - len(first))])
    return [candidate for candidate, score in scores if score >= least]


def boundary(ranked: Sequence[float]) -> float:
    """Return the smallest value of the better of two classes, by Otsu's method.

    It maximizes the distance of the two class means, weighted by the class sizes.

    Source: Otsu 1979, A Threshold Selection Method from Gray-Level Histograms. On two conversations
    of LoCoMo (top_k 10) it keeps 6 of 10: 24 % of them evidence instead of 9 %, recall 75 % instead
    of 79 %.
    """
    upper, lower = 0.0, sum(ranked)
    least, furthest = 0.0, 0.0
    for count, value in enumerate(ranked[:-1], start=1):
        upper, lower = upper + value, lower - value
        others = len(ranked) - count
        apart = count * others * (upper / count - lower / others) ** 2
        if apart > furthest:
            least, furthest = value, apart
    return least
