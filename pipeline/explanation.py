"""Why a memory came back, or what cut it: the same ranking, looked at from one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pipeline.fusion import Score
from pipeline.ledger import Ledger
from pipeline.ledger.passages import Where
from pipeline.ledger.turns import PassageKey
from pipeline.selection import Selection


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

    def verdict(self, key: PassageKey) -> Verdict:
        """What became of a candidate."""
        if key in self.best():
            return Verdict.RETURNED
        if not self.selection.is_near(key, self.scores[key]):
            return Verdict.BELOW_THRESHOLD
        kept = self.selection.kept(self.order, self.scores)
        return Verdict.BEYOND_TOP_K if key in kept else Verdict.FAR_BEHIND


# How many of those that were cut are told of where nobody names one.
NEXT = 10


async def explain(
    project_id: UUID, ids: Sequence[UUID] | None, ranking: Ranking, ledger: Ledger
) -> list[Explained]:
    """What became of these memories or turns; without ids, of the best that did not come back."""
    if ids is None:
        best = set(ranking.best())
        cut = [key for key in ranking.order if key not in best]
        ids = [key.public_id for key in cut[:NEXT]]
    if not ids:
        return []
    ranks = {key.public_id: rank for rank, key in enumerate(ranking.order, start=1)}
    return [
        _explained(one, ranking, ranks[one])
        if one in ranks
        else Explained(one, await _why_none(project_id, one, ranking, ledger))
        for one in ids
    ]


def _explained(one: UUID, ranking: Ranking, rank: int) -> Explained:
    key = ranking.order[rank - 1]
    return Explained(one, ranking.verdict(key), rank, ranking.scores[key])


async def _why_none(project_id: UUID, one: UUID, ranking: Ranking, ledger: Ledger) -> Verdict:
    if not await ledger.memories.active(project_id, [one]):
        return Verdict.UNKNOWN
    key = PassageKey(one)
    matching = await ledger.passages.placed(ranking.where, [key], embedded=[], embedder="")
    return Verdict.NOT_A_CANDIDATE if matching else Verdict.FILTERED
