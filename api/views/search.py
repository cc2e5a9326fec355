"""Responses to searches: hits, turns, relations and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from api.views.memories import attributes, memory, only, scope_ids
from pipeline.domain.passages import Turn
from pipeline.graph.store import RelationView
from pipeline.search.candidates import Score
from pipeline.search.explain import MEANING, Explained
from pipeline.search.prompt_context import assemble
from pipeline.search.service import Hit, SearchResult

# Characters of text in the results of a search.
LONGEST_ANSWER = 4_000_000


def turn(found: Turn) -> dict[str, Any]:
    """A message as it was said, in a memory's keys: every client can read it."""
    return {
        "id": str(found.id),
        "memory": found.text,
        **scope_ids(found.scope),
        "session_id": found.scope.run_id,
        "metadata": found.metadata or None,
        "categories": [],
        "structured_attributes": attributes(found.said_at),
        "immutable": True,
        "expiration_date": None,
        "attributed_to": found.role,
        "speaker": found.speaker,
        "event_id": str(found.event_id),
        "version": 1,
        "pending": found.pending,
        "timestamp": found.said_at,
        "created_at": found.created_at,
        "updated_at": found.created_at,
        "lifecycle_state": "active",
        "replaced_by": None,
        "synthesized": False,
    }


def hit(found: Hit) -> dict[str, Any]:
    """One result with its score."""
    match found.passage:
        case Turn() as said:
            passage = {"type": "turn"} | turn(said)
        case stored:
            passage = {"type": "fact"} | memory(stored)
    if found.around:
        passage["context"] = [turn(one) for one in found.around]
    return passage | scored(found.score)


def search(
    found: SearchResult, *, max_tokens: int | None = None, fields: list[str] | None = None
) -> dict[str, Any]:
    """A search response."""
    hits = _within(found.hits)
    answer: dict[str, Any] = {
        "results": [only(hit(one), fields) for one in hits],
        "relations": [relation(one) for one in found.relations],
        "degraded": found.degraded,
        "incomplete": found.incomplete,
        "pending": found.pending,
        "reranked": found.reranked,
    }
    if len(hits) < len(found.hits):
        answer["truncated"] = True
    if found.not_reranked:
        answer["not_reranked"] = found.not_reranked
    if found.explained:
        answer["explanation"] = [explained(one) for one in found.explained]
    if max_tokens is not None:
        told = assemble([hit.passage for hit in found.hits], max_tokens=max_tokens)
        answer |= {
            "context": told.text,
            "context_sources": [str(one.id) for one in told.sources],
            "context_tokens": told.tokens,
        }
    return answer


def _within(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The first hits whose texts, with the turns around them, fit an answer; at least one."""
    sizes = ((len(hit.passage.text) + sum(len(turn.text) for turn in hit.around)) for hit in hits)
    fitting = sum(1 for size in accumulate(sizes) if size <= LONGEST_ANSWER)
    return hits[: max(fitting, 1)]


def explained(found: Explained) -> dict[str, Any]:
    """The reason a candidate is or is not among the results."""
    return {
        "id": str(found.id),
        "verdict": found.verdict,
        "detail": MEANING[found.verdict],
        "rank": found.rank,
        **(scored(found.score) if found.score else {"score": None}),
    }


def scored(score: Score) -> dict[str, Any]:
    """A score; `terms` are what each part of the fusion adds to it, `rerank` stands beside it.

    `bm25` and `entity` are the names of the Mem0 Platform: the words, and who or what is named.
    """
    breakdown = {
        "semantic": round(score.semantic, 4),
        "bm25": round(score.lexical, 4),
        "entity": round(max(score.signals.speaker, score.signals.graph), 4),
        "lexical": round(score.lexical, 4),
        "terms": {name: round(share, 4) for name, share in score.shares.items()},
    }
    if score.reranked is not None:
        breakdown["rerank"] = round(score.reranked, 4)
    return {"score": round(score.total, 4), "score_breakdown": breakdown}


def relation(found: RelationView) -> dict[str, Any]:
    """A relation near the results."""
    return {
        "source": found.source,
        "source_type": found.source_kind,
        "relationship": found.relation,
        "target": found.destination,
        "target_type": found.destination_kind,
        "valid_from": found.valid_from,
    }
