"""Rerank: a reranker reads query and candidate together, which the fusion does not.

    fused order ──► the near ones, up to its limit ──► reranker ──► its order
                └─► all others, in the fused order ──────────────► behind them

Without a reranker, or if it does not answer, the fused order stays, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import islice

import structlog

from pipeline.domain.errors import StageError
from pipeline.models.circuit_breaker import on_behalf_of
from pipeline.ports import Reranker
from pipeline.search.candidates import Candidate
from pipeline.search.prompt_context import labelled
from pipeline.search.ranking.cutoff import Cutoff, compared_for
from pipeline.search.store import Passages
from pipeline.search.where import Where

log = structlog.get_logger()

NOT_CONFIGURED = "NOT_CONFIGURED"


@dataclass(frozen=True, slots=True)
class Reranking:
    """Candidates in their final order. `reason`: why a requested reranking did not happen."""

    ranked: Sequence[Candidate]
    reranked: bool = False
    reason: str | None = None

    @property
    def failed(self) -> bool:
        """Tell if a configured reranker did not answer."""
        return self.reason is not None and self.reason != NOT_CONFIGURED


async def rerank(
    text: str,
    ranked: Sequence[Candidate],
    cutoff: Cutoff,
    *,
    where: Where,
    reranker: Reranker | None,
    passages: Passages,
    away: AbstractAsyncContextManager[None],
) -> Reranking:
    """Order the best candidates by the reranker's scores; equal scores keep the fused order.

    `away`: entered while the reranker is waited for.
    """
    if reranker is None:
        return Reranking(ranked, reason=NOT_CONFIGURED)
    near = list(islice(cutoff.near(ranked), compared_for(cutoff.top_k)))
    read = await passages.read(where, [candidate.key for candidate in near])
    shown = [candidate for candidate in near if candidate.key in read]
    documents = [labelled(read[candidate.key]) for candidate in shown]
    try:
        async with away:
            with on_behalf_of(where.project_id):
                scores = await reranker.rerank(text, documents)
    except StageError as error:
        log.warning("search_not_reranked", model=reranker.name, code=error.code)
        return Reranking(ranked, reason=error.code)
    by_key = {candidate.key: score for candidate, score in zip(shown, scores, strict=True)}
    for candidate in shown:
        candidate.score = candidate.score._replace(reranked=by_key[candidate.key])
    first = sorted(shown, key=lambda candidate: -by_key[candidate.key])
    others = [candidate for candidate in ranked if candidate.key not in by_key]
    return Reranking([*first, *others], reranked=True)
