"""A second look at the best: a reranker reads question and candidate together, fusion only counts.

    fused order ──► the near ones, as many as it is shown ──► reranker ──► its order
                └─► all others, as they were fused ──────────────────────► behind them

Where there is no reranker, or it does not answer, the fused order stands, and the reason is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from pipeline.domain.errors import StageError
from pipeline.domain.passages import PassageKey
from pipeline.ports import Reranker
from pipeline.search.cutoff import looked_at
from pipeline.search.explain import Ranking
from pipeline.search.prompt_context import told
from pipeline.search.store import Passages

log = structlog.get_logger()

NOT_CONFIGURED = "NOT_CONFIGURED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`reason`: why the fused order stands although the reranker's was asked for."""

    ranking: Ranking
    reranked: bool = False
    reason: str | None = None


async def rerank(
    question: str, ranking: Ranking, *, reranker: Reranker | None, passages: Passages
) -> Outcome:
    if reranker is None:
        return Outcome(ranking, reason=NOT_CONFIGURED)
    shown = ranking.selection.near(ranking.order, ranking.scores)
    read = await passages.read(
        ranking.where.project_id, shown[: looked_at(ranking.selection.top_k)]
    )
    keys = [key for key in shown if key in read]
    try:
        said = await reranker.rerank(question, [told(read[key]) for key in keys])
    except StageError as error:
        log.warning("search_not_reranked", model=reranker.name, code=error.code)
        return Outcome(ranking, reason=error.code)
    return Outcome(_reordered(ranking, keys, said), reranked=True)


def _reordered(ranking: Ranking, keys: Sequence[PassageKey], said: Sequence[float]) -> Ranking:
    """Equal scores keep the fused order."""
    by_key = dict(zip(keys, said, strict=True))
    first = sorted(keys, key=lambda key: -by_key[key])
    scores = {
        key: score._replace(reranked=by_key.get(key)) for key, score in ranking.scores.items()
    }
    order = [*first, *(key for key in ranking.order if key not in by_key)]
    return replace(ranking, scores=scores, order=order)
