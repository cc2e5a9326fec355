"""Responses to searches: hits, turns, relations and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from api.http.paging import size_bytes
from api.memories.views import attributes, memory, only, scope_ids
from pipeline.domain.memories import Memory
from pipeline.domain.passages import Turn
from pipeline.graph.views import GraphPath, RelationView
from pipeline.search.candidates import Score
from pipeline.search.explain import MEANING, Explained, Verdict
from pipeline.search.latest import Hit
from pipeline.search.prompt_context import assemble
from pipeline.search.service import SearchResult

# Maximum number of characters in the results of a search, and those of a passage without its text
# and metadata, as JSON.
LONGEST_ANSWER = 4_000_000
AROUND_TEXT = 1_200
# Keys of metadata that take as long as a passage without them.
KEYS_OF_A_ROW = 40


def turn(row: Turn) -> dict[str, Any]:
    """A verbatim message, with the keys of a memory, so that every client can read it."""
    return {
        "id": str(row.id),
        "memory": row.text,
        **scope_ids(row.scope),
        "session_id": row.scope.run_id,
        "metadata": row.metadata or None,
        "categories": [],
        "structured_attributes": attributes(row.said_at),
        "immutable": True,
        "pinned": False,
        "edited_at": None,
        "expiration_date": None,
        "attributed_to": row.role,
        "speaker": row.speaker,
        "event_id": str(row.event_id),
        "version": 1,
        "pending": row.pending,
        "timestamp": row.said_at,
        "said_at": row.said_at,
        "valid_from": row.said_at,
        **dict.fromkeys(("kind", "memory_type", "subject", "attribute", "slot", "confidence")),
        "created_at": row.created_at,
        "updated_at": row.created_at,
        "lifecycle_state": "active",
        "replaced_by": None,
        "synthesized": False,
        "conflict_id": None,
        "suggestion_id": None,
    }


def hit(row: Hit) -> dict[str, Any]:
    """One result with its score."""
    match row.passage:
        case Turn() as message:
            passage = {"type": "turn"} | turn(message)
        case stored:
            passage = {"type": "fact"} | memory(stored)
    if row.around:
        passage["context"] = [turn(message) for message in row.around]
    return passage | scored(row.score)


def search(
    ranking: SearchResult, *, max_tokens: int | None = None, fields: list[str] | None = None
) -> dict[str, Any]:
    """A search response."""
    hits = _within(ranking.hits)
    answer: dict[str, Any] = {
        "results": [only(hit(row), fields) for row in hits],
        "relations": [path(row) for row in ranking.relations],
        "degraded": ranking.degraded,
        "degraded_parts": ranking.degraded_parts,
        "incomplete": ranking.incomplete,
        "pending": ranking.pending,
        "reranked": ranking.reranked,
    }
    if ranking.bounded_parts:
        answer["bounded_parts"] = ranking.bounded_parts
    if len(hits) < len(ranking.hits):
        answer["truncated"] = True
    if ranking.left_out:
        answer["cut"] = {
            "left_out": len(ranking.left_out),
            "first_rank": ranking.left_out[0],
            "reason": Verdict.NO_EVIDENCE,
        }
    if ranking.not_reranked:
        answer["not_reranked"] = ranking.not_reranked
    if ranking.explained:
        answer["explanation"] = [explained(row) for row in ranking.explained]
    if max_tokens is not None:
        context = assemble([row.passage for row in ranking.hits], max_tokens=max_tokens)
        answer |= {
            "context": context.text,
            "context_sources": [str(source.id) for source in context.sources],
            "context_tokens": context.tokens,
        }
    return answer


def size(ranking: SearchResult) -> tuple[int, int]:
    """Rows and characters of the response, about."""
    passages = [passage for row in ranking.hits for passage in (row.passage, *row.around)]
    keys = sum(len(passage.metadata or ()) for passage in passages)
    rows = len(passages) + len(ranking.explained) + len(ranking.relations)
    return rows + keys // KEYS_OF_A_ROW, sum(len(passage.text) for passage in passages)


def _within(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The first hits that fit the limit as JSON, with the turns around them; at least one."""
    sizes = (sum(map(_size, (hit.passage, *hit.around))) for hit in hits)
    fitting = sum(1 for size in accumulate(sizes) if size <= LONGEST_ANSWER)
    return hits[: max(fitting, 1)]


def _size(passage: Memory | Turn) -> int:
    """Characters of a passage as JSON with its ids and names, a little too many."""
    ids = (*scope_ids(passage.scope).values(), passage.scope.run_id)
    names = sum(len(name) for name in ids if name) + len(passage.speaker or "")
    return len(passage.text) + size_bytes(passage.metadata or {}) + names + AROUND_TEXT


def explained(row: Explained) -> dict[str, Any]:
    """The reason why a candidate is or is not in the results."""
    return {
        "id": str(row.id),
        "verdict": row.verdict,
        "detail": MEANING[row.verdict],
        "rank": row.rank,
        **(scored(row.score) if row.score else {"score": None}),
    }


def scored(score: Score) -> dict[str, Any]:
    """A score. `terms`: what each part of the fusion adds to it; the rest is separate.

    `bm25` and `entity` are the Mem0 Platform's names for matches of words and of named entities.
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
    if score.decay is not None:
        breakdown["decay"] = round(score.decay, 4)
    if score.evidence is not None:
        breakdown["evidence"] = round(score.evidence, 4)
    if score.closeness is not None:
        breakdown["closeness"] = round(score.closeness, 4)
    return {"score": round(score.total, 4), "score_breakdown": breakdown}


def path(row: GraphPath) -> dict[str, Any]:
    """A relation, with the relations that lead to it from an entity of the query."""
    return relation(row.relation) | {"path": [relation(step) for step in row.via]}


def relation(row: RelationView) -> dict[str, Any]:
    """A relation with its times: in the world, and in Memlane."""
    return {
        "id": str(row.id),
        "source": row.source,
        "source_id": str(row.source_id),
        "source_type": row.source_kind,
        "relationship": row.relation,
        "target": row.destination,
        "target_id": str(row.destination_id),
        "target_type": row.destination_kind,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "created_at": row.created_at,
        "expired_at": row.expired_at,
        "memory_id": str(row.memory_id) if row.memory_id else None,
        "conflict_id": str(row.conflict_id) if row.conflict_id else None,
        "event_id": str(row.event_id),
    }
