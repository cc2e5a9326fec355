"""Explanations: the reason why a memory was returned, or the step that removed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pipeline.domain.passages import PassageKey
from pipeline.search.candidates import Candidate, Score
from pipeline.search.ports import SearchStores
from pipeline.search.ranking.cutoff import Cutoff
from pipeline.search.where import Where

# Number of candidates explained if the request names no ids: the best that were not returned.
NEXT = 10


class Verdict(StrEnum):
    """Outcome of one memory or turn."""

    RETURNED = "returned"
    BEYOND_TOP_K = "beyond_top_k"
    BELOW_THRESHOLD = "below_threshold"
    FAR_BEHIND = "far_behind"
    NO_EVIDENCE = "no_evidence"
    NOT_A_CANDIDATE = "not_a_candidate"
    FILTERED = "filtered"
    UNKNOWN = "unknown"


# Explanation of each verdict, for people.
MEANING = {
    Verdict.RETURNED: "It is among the results.",
    Verdict.BEYOND_TOP_K: "It ranks below the last result; ask for more with top_k.",
    Verdict.BELOW_THRESHOLD: "Its semantic score is below the threshold.",
    Verdict.FAR_BEHIND: "It accounts for too little of the question; filter_memories cuts it.",
    Verdict.NO_EVIDENCE: (
        "It has too few of the query's words and its meaning does not stand out, so the default "
        "cut leaves it out; a search with top_k or threshold returns it."
    ),
    Verdict.NOT_A_CANDIDATE: (
        "Other memories hold more of the query's words, and others lie nearer in meaning."
    ),
    Verdict.FILTERED: "It does not match the filters, or has expired.",
    Verdict.UNKNOWN: "There is no current memory of this id.",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """`rank` counts from 1 among all candidates; `rank` and `score` are None if it was none."""

    id: UUID
    verdict: Verdict
    rank: int | None = None
    score: Score | None = None


async def explain(
    ids: Sequence[UUID] | None,
    ranked: Sequence[Candidate],
    cutoff: Cutoff,
    where: Where,
    ledger: SearchStores,
) -> list[Explained]:
    """Return verdicts on these memories or turns; with None, on the best that were not returned."""
    if ids is None:
        best = {candidate.key for candidate in cutoff.best(ranked)}
        ids = [candidate.key.public_id for candidate in ranked if candidate.key not in best][:NEXT]
    if not ids:
        return []
    verdicts = _verdicts(ranked, cutoff)
    of_candidates = {
        candidate.key.public_id: Explained(
            candidate.key.public_id, verdicts[candidate.key], rank, candidate.score
        )
        for rank, candidate in enumerate(ranked, start=1)
    }
    others = await _others([id_ for id_ in ids if id_ not in of_candidates], where, ledger)
    return [of_candidates.get(id_) or Explained(id_, others[id_]) for id_ in ids]


def _verdicts(ranked: Sequence[Candidate], cutoff: Cutoff) -> dict[PassageKey, Verdict]:
    """Return the verdict on each candidate; each step overwrites those of the step before."""
    verdicts = dict.fromkeys((candidate.key for candidate in ranked), Verdict.BELOW_THRESHOLD)
    for verdict, passed in (
        (Verdict.FAR_BEHIND, cutoff.near(ranked)),
        (Verdict.BEYOND_TOP_K, cutoff.passing(ranked)),
        (Verdict.NO_EVIDENCE, cutoff.first(ranked)),
        (Verdict.RETURNED, cutoff.best(ranked)),
    ):
        verdicts |= dict.fromkeys((candidate.key for candidate in passed), verdict)
    return verdicts


async def _others(ids: Sequence[UUID], where: Where, ledger: SearchStores) -> dict[UUID, Verdict]:
    """Verdicts on ids that are no candidates."""
    if not ids:
        return {}
    current = [memory.id for memory in await ledger.memories.active(where.project_id, ids)]
    matching = await ledger.passages.matching(where, [PassageKey(id_) for id_ in current])
    verdicts = dict.fromkeys(ids, Verdict.UNKNOWN) | dict.fromkeys(current, Verdict.FILTERED)
    return verdicts | dict.fromkeys((key.id for key in matching), Verdict.NOT_A_CANDIDATE)
