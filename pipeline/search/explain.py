"""Why a memory came back, or what cut it: the same ranking, looked at from one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pipeline.domain.passages import PassageKey
from pipeline.domain.tenants import ProjectId
from pipeline.search.cutoff import Selection
from pipeline.search.fusion import Score
from pipeline.search.ports import SearchStores
from pipeline.search.store import Where


class Verdict(StrEnum):
    RETURNED = "returned"
    BEYOND_TOP_K = "beyond_top_k"
    BELOW_THRESHOLD = "below_threshold"
    FAR_BEHIND = "far_behind"
    NOT_A_CANDIDATE = "not_a_candidate"
    FILTERED = "filtered"
    UNKNOWN = "unknown"


# What each verdict means, for people.
MEANING = {
    Verdict.RETURNED: "It is among the results.",
    Verdict.BEYOND_TOP_K: "It ranks below the last result; ask for more with top_k.",
    Verdict.BELOW_THRESHOLD: "Its semantic score is below the threshold.",
    Verdict.FAR_BEHIND: "It is clearly less relevant than the best; filter_memories cuts it.",
    Verdict.NOT_A_CANDIDATE: (
        "Other memories hold more of the query's words, and others lie nearer in meaning."
    ),
    Verdict.FILTERED: "It does not match the filters, or has expired.",
    Verdict.UNKNOWN: "There is no current memory of this id.",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """`rank` counts from 1 among all candidates; None, as `score`, for what was none."""

    id: UUID
    verdict: Verdict
    rank: int | None = None
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first, and which of them may come back."""

    where: Where
    scores: Mapping[PassageKey, Score]
    order: Sequence[PassageKey]
    selection: Selection

    def best(self) -> list[PassageKey]:
        return self.selection.best(self.order, self.scores)

    def verdicts(self) -> dict[PassageKey, Verdict]:
        """The outcome of each candidate."""
        kept = self.selection.kept(self.order, self.scores)
        found = dict.fromkeys(self.order, Verdict.BELOW_THRESHOLD)
        found |= dict.fromkeys(self.selection.near(self.order, self.scores), Verdict.FAR_BEHIND)
        found |= dict.fromkeys(kept, Verdict.BEYOND_TOP_K)
        return found | dict.fromkeys(self.best(), Verdict.RETURNED)


# How many of those that were cut are told of where nobody names one.
NEXT = 10


async def explain(
    project_id: ProjectId, ids: Sequence[UUID] | None, ranking: Ranking, ledger: SearchStores
) -> list[Explained]:
    """What became of these memories or turns; without ids, of the best that did not come back."""
    if ids is None:
        best = set(ranking.best())
        cut = [key for key in ranking.order if key not in best]
        ids = [key.public_id for key in cut[:NEXT]]
    if not ids:
        return []
    ranks = {key.public_id: rank for rank, key in enumerate(ranking.order, start=1)}
    verdicts = ranking.verdicts()
    others = await _why_none(project_id, [one for one in ids if one not in ranks], ranking, ledger)
    return [
        _explained(one, ranking, verdicts, ranks[one])
        if one in ranks
        else Explained(one, others[one])
        for one in ids
    ]


def _explained(
    one: UUID, ranking: Ranking, verdicts: Mapping[PassageKey, Verdict], rank: int
) -> Explained:
    key = ranking.order[rank - 1]
    return Explained(one, verdicts[key], rank, ranking.scores[key])


async def _why_none(
    project_id: ProjectId, ids: Sequence[UUID], ranking: Ranking, ledger: SearchStores
) -> dict[UUID, Verdict]:
    """Of ids that are no candidates."""
    current = {memory.id for memory in await ledger.memories.active(project_id, ids)}
    keys = [PassageKey(one) for one in current]
    matching = {key.id for key in await ledger.passages.matching(ranking.where, keys)}
    return {
        one: Verdict.UNKNOWN
        if one not in current
        else Verdict.NOT_A_CANDIDATE
        if one in matching
        else Verdict.FILTERED
        for one in ids
    }
