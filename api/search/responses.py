"""Responses to searches: hits, turns, relations and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Literal, NotRequired, cast

from typing_extensions import TypedDict

from api.http.paging import size_bytes
from api.http.shared_responses import (
    Id,
    PageKeysJson,
    SelectedFields,
    json_of,
    scope_ids,
    words,
)
from api.lists.after_event import AfterEventJson
from api.memories.responses import MemoryJson, attributes, memory, only
from pipeline.domain.memories import Memory
from pipeline.domain.passages import Turn
from pipeline.graph.views import GraphPath, RelationView
from pipeline.search.candidates import Score
from pipeline.search.explain import MEANING, Explained, Verdict
from pipeline.search.prompt_context import assemble
from pipeline.search.ranking.latest import Hit
from pipeline.search.service import DegradedPart, SearchResult

# Maximum number of characters in the results of a search, and those of a passage without its text
# and metadata, as JSON.
LONGEST_ANSWER = 4_000_000
AROUND_TEXT = 1_200
# Keys of metadata that take as long as a passage without them.
KEYS_OF_A_ROW = 40


class TurnJson(MemoryJson):
    """A verbatim message, with the keys of a memory, so that every client can read it."""

    pending: bool


class ScoreBreakdownJson(TypedDict):
    """The parts of a score. `terms`: what each part of the fusion adds to it.

    `bm25` and `entity` are the Mem0 Platform's names for matches of words and of named entities.
    """

    semantic: float
    bm25: float
    entity: float
    lexical: float
    terms: dict[str, float]
    rerank: NotRequired[float]
    decay: NotRequired[float]
    evidence: NotRequired[float]
    closeness: NotRequired[float]


class ScoredJson(TypedDict):
    """A score, and its parts."""

    score: float
    score_breakdown: ScoreBreakdownJson


class WholeHitJson(MemoryJson, ScoredJson):
    """One result. `context`: the turns around it. `pending`: the event of a turn has not ended."""

    type: Literal["fact", "turn"]
    pending: NotRequired[bool]
    context: NotRequired[list[TurnJson]]


# A result, or the fields of it that the request names.
HitJson = Annotated[WholeHitJson, SelectedFields("HitJson")]


class RelationKeysJson(TypedDict):
    """A relation with its times: in the world, and in Memlane."""

    id: Id
    source: str
    source_id: Id
    source_type: str
    relationship: str
    target: str
    target_id: Id
    target_type: str
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    expired_at: datetime | None
    memory_id: Id | None
    conflict_id: Id | None
    event_id: Id


class RelationJson(RelationKeysJson):
    """A relation, with the relations that lead to it from an entity of the query."""

    path: list[RelationKeysJson]


class RelationPageJson(PageKeysJson):
    """A page of relations. `incomplete`: relations may be missing."""

    results: list[RelationJson]
    incomplete: bool


class ExplanationJson(TypedDict):
    """The reason why a candidate is or is not in the results."""

    id: Id
    verdict: str
    detail: str
    rank: int | None
    score: float | None
    score_breakdown: NotRequired[ScoreBreakdownJson]


class CutJson(TypedDict):
    """Results that show no sign of an answer: their number, and the rank of the first one."""

    left_out: int
    first_rank: int
    reason: str


class SearchAnswerJson(AfterEventJson):
    """The results of a search, best first, and the relations around them.

    `degraded_parts`: parts that did not answer, or not for all passages. `bounded_parts`: parts
    that did not compare all passages, because the scope is large. `incomplete`: the filter matches
    more passages than can be compared exactly. `pending`: number of unfinished events of the ids in
    the filter, up to 1,000. `truncated`: results were left out, because the response would be too
    large.
    """

    results: list[HitJson]
    relations: list[RelationJson]
    degraded: bool
    degraded_parts: Sequence[DegradedPart]
    incomplete: bool
    pending: int | None
    reranked: bool
    bounded_parts: NotRequired[Sequence[Annotated[DegradedPart, words("words")]]]
    truncated: NotRequired[bool]
    cut: NotRequired[CutJson]
    not_reranked: NotRequired[str]
    explanation: NotRequired[list[ExplanationJson]]
    context: NotRequired[str]
    context_sources: NotRequired[list[Id]]
    context_tokens: NotRequired[int]


def turn(row: Turn) -> TurnJson:
    """A verbatim message."""
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
        "kind": None,
        "memory_type": None,
        "subject": None,
        "attribute": None,
        "slot": None,
        "confidence": None,
        "created_at": row.created_at,
        "updated_at": row.created_at,
        "lifecycle_state": "active",
        "replaced_by": None,
        "synthesized": False,
        "conflict_id": None,
        "suggestion_id": None,
    }


def hit(row: Hit) -> WholeHitJson:
    """One result with its score."""
    match row.passage:
        case Turn() as message:
            passage = {"type": "turn", **turn(message)}
        case stored:
            passage = {"type": "fact", **memory(stored)}
    response = cast("WholeHitJson", passage | scored(row.score))
    if row.around:
        response["context"] = [turn(message) for message in row.around]
    return response


def search(
    ranking: SearchResult, *, max_tokens: int | None = None, fields: list[str] | None = None
) -> SearchAnswerJson:
    """A search response."""
    hits = _within(ranking.hits)
    answer: SearchAnswerJson = {
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
        answer["context"] = context.text
        answer["context_sources"] = [str(source.id) for source in context.sources]
        answer["context_tokens"] = context.tokens
    return answer


def size(ranking: SearchResult) -> tuple[int, int]:
    """Rows and characters of the response, about."""
    passages = [passage for row in ranking.hits for passage in (row.passage, *row.around)]
    rows, characters = size_of(passages)
    return rows + len(ranking.explained) + len(ranking.relations), characters


def size_of(passages: Sequence[Memory | Turn]) -> tuple[int, int]:
    """Rows and characters of a list, about; keys of metadata count as parts of rows."""
    keys = sum(len(passage.metadata or ()) for passage in passages)
    characters = sum(len(passage.text) for passage in passages)
    return len(passages) + keys // KEYS_OF_A_ROW, characters


def _within(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The first hits that fit the limit as JSON, with the turns around them; at least one."""
    sizes = (sum(map(_size, (hit.passage, *hit.around))) for hit in hits)
    fitting = sum(1 for size in accumulate(sizes) if size <= LONGEST_ANSWER)
    return hits[: max(fitting, 1)]


def _size(passage: Memory | Turn) -> int:
    """Characters of a passage as JSON with its ids and names, a little too many."""
    scope = passage.scope
    ids = (scope.user_id, scope.agent_id, scope.app_id, scope.run_id, scope.run_id)
    names = sum(len(name) for name in ids if name) + len(passage.speaker or "")
    return len(passage.text) + size_bytes(passage.metadata or {}) + names + AROUND_TEXT


def explained(row: Explained) -> ExplanationJson:
    """The reason why a candidate is or is not in the results."""
    response: ExplanationJson = {
        "id": str(row.id),
        "verdict": row.verdict,
        "detail": MEANING[row.verdict],
        "rank": row.rank,
        "score": None,
    }
    return {**response, **scored(row.score)} if row.score else response


def scored(score: Score) -> ScoredJson:
    """A score, and its parts."""
    breakdown: ScoreBreakdownJson = {
        "semantic": round(score.semantic, 4),
        "bm25": round(score.lexical, 4),
        "entity": round(max(score.signals.speaker, score.signals.graph), 4),
        "lexical": round(score.lexical, 4),
        "terms": {name: round(share, 4) for name, share in score.shares.items()},
    }
    if score.reranked is not None:
        breakdown["rerank"] = round(score.reranked, 4)
    for name in ("decay", "evidence", "closeness"):
        if (value := getattr(score, name)) is not None:
            breakdown[name] = round(value, 4)
    return {"score": round(score.total, 4), "score_breakdown": breakdown}


def path(row: GraphPath) -> RelationJson:
    """A relation, with the relations that lead to it from an entity of the query."""
    return {**relation(row.relation), "path": [relation(step) for step in row.via]}


def relation(row: RelationView) -> RelationKeysJson:
    """A relation with its times: in the world, and in Memlane."""
    return json_of(
        RelationKeysJson,
        row,
        source_type=row.source_kind,
        relationship=row.relation,
        target=row.destination,
        target_id=row.destination_id,
        target_type=row.destination_kind,
    )
