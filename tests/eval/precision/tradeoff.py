"""Trade-off of the default cut: results and lost answers for other values of its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from deploy.docs.tables import table
from pipeline.domain.passages import FACT, PassageKey
from pipeline.search.candidates import Candidate, Score, Signals
from pipeline.search.ranking.cutoff import SIGNS, Signs, supported
from pipeline.search.weights import Weights

Results = Sequence[Mapping[str, Any]]
# Limits to compare, from mild to strict; the one in use is among them.
LIMITS = (
    Signs(words=0.3, by_meaning=10),
    Signs(words=0.3, by_meaning=5),
    Signs(words=0.3, by_meaning=3),
    SIGNS,
    Signs(words=0.7, by_meaning=3),
    Signs(words=0.5, by_meaning=2),
    Signs(words=0.5, by_meaning=1),
    Signs(words=0.5, by_meaning=0),
)


def tradeoff(
    sets: Mapping[str, Sequence[tuple[Results, frozenset[str]]]], limits: Sequence[Signs]
) -> str:
    """A row for each limit and set. `sets`: results without a cut, and the texts that answer."""
    head = (
        "words of the best", "by meaning", "set", "results", "results, no answer exists",
        "exact sets", "answers lost",
    )  # fmt: skip
    rows = [
        (f"{signs.words:.0%}", f"{signs.by_meaning}", name, *_figures(questions, signs))
        for signs in limits
        for name, questions in sets.items()
    ]
    return table(head, rows)


def _figures(questions: Sequence[tuple[Results, frozenset[str]]], signs: Signs) -> tuple[str, ...]:
    counts, unanswerable, exact, lost, answers = [], [], 0, 0, 0
    for results, expected in questions:
        returned = _cut(results, signs)
        present = expected & {row["memory"] for row in results}
        counts.append(len(returned))
        unanswerable += [len(returned)] * (not expected)
        exact += returned == expected
        lost += len(present - returned)
        answers += len(present)
    none = f"{sum(unanswerable) / len(unanswerable):.1f}" if unanswerable else "-"
    mean = f"{sum(counts) / len(counts):.1f}"
    return mean, none, f"{exact} of {len(questions)}", f"{lost} of {answers}"


def _cut(results: Results, signs: Signs) -> frozenset[str]:
    """The texts that the default cut leaves of the results, with these limits."""
    candidates = [_candidate(row) for row in results]
    keys = {candidate.key for candidate in supported(candidates, signs)}
    pairs = zip(results, candidates, strict=True)
    return frozenset(row["memory"] for row, candidate in pairs if candidate.key in keys)


def _candidate(row: Mapping[str, Any]) -> Candidate:
    """A candidate with the signs of a result; each stands alone, as in the sets."""
    breakdown = row["score_breakdown"]
    signals = Signals(lexical=breakdown["lexical"], date=breakdown["terms"]["date"])
    at = datetime.fromisoformat(row["said_at"]).astimezone(UTC)
    candidate = Candidate(PassageKey(UUID(row["id"]), FACT), UUID(int=0), None, at)
    candidate.score = Score(signals, Weights(), closeness=breakdown["closeness"])
    return candidate
