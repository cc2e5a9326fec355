"""Search: a query -> ranked memories and the relations around them.

Both indexes only propose; the ledger decides what exists, what it says and who may see it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, and_

from pipeline.errors import TransientError
from pipeline.filters import Filter, pinned
from pipeline.fusion import Score, fuse
from pipeline.ledger import Ledger
from pipeline.ledger.changes import Memory
from pipeline.ledger.filtering import lanes_of, matches, unexpired
from pipeline.ledger.graph import RelationView
from pipeline.ports import Embedder
from pipeline.vectors import VectorIndex

log = structlog.get_logger()

# Candidates a channel brings: enough that a good memory in either list is not cut before fusion.
WIDEN, AT_LEAST = 4, 60
WORD = re.compile(r"\w+(?:['’]\w+)?")
MOST_WORDS = 64
RELATIONS = 10


@dataclass(frozen=True, slots=True)
class Query:
    """`threshold` is compared with the semantic score (0..1); 0 lets everything through."""

    text: str
    filter: Filter
    top_k: int
    threshold: float
    show_expired: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    memory: Memory
    score: Score


@dataclass(frozen=True, slots=True)
class Found:
    """`degraded`: the dense channel could not be asked, so only words were compared.

    `pending`: how many events of the ids that the filter pins had not ended; None where it pins
    none.
    """

    hits: Sequence[Hit]
    relations: Sequence[RelationView]
    degraded: bool
    pending: int | None


async def search(
    project_id: UUID, query: Query, *, ledger: Ledger, embedder: Embedder, index: VectorIndex
) -> Found:
    where = matches(project_id, query.filter)
    if not query.show_expired:
        where = and_(where, unexpired())
    ids = pinned(query.filter)
    around = lanes_of(project_id, ids)
    # Counted before anything is read: none pending means that nothing is missing below.
    pending = await ledger.events.unsettled(around) if ids else None
    limit = max(WIDEN * query.top_k, AT_LEAST)
    words = list(dict.fromkeys(WORD.findall(query.text)))[:MOST_WORDS]
    lexical = await ledger.memories.by_words(where, words, limit=limit)
    semantic, degraded = await _semantic(
        project_id, query, where, list(lexical), limit, ledger, embedder, index
    )
    scores = fuse(semantic, lexical)
    stored = await ledger.memories.matching(where, list(scores))
    hits = [
        Hit(memory, scores[memory.id])
        for memory in stored
        if degraded or scores[memory.id].semantic >= query.threshold
    ]
    hits.sort(key=lambda hit: (-hit.score.total, hit.memory.created_at, hit.memory.id))
    hits = hits[: query.top_k]
    near = await ledger.graph.near(
        around,
        query.text,
        [hit.memory.text for hit in hits],
        limit=RELATIONS,
    )
    return Found(hits, near, degraded, pending)


async def _semantic(
    project_id: UUID,
    query: Query,
    where: ColumnElement[bool],
    also: Sequence[UUID],
    limit: int,
    ledger: Ledger,
    embedder: Embedder,
    index: VectorIndex,
) -> tuple[dict[UUID, float], bool]:
    """Cosine of the nearest memories and of those found by words; True where it cannot be had."""
    ids = {"project_id": str(project_id)} | pinned(query.filter)
    try:
        [vector] = await embedder.embed([query.text])
        hits = await index.nearest(ids, vector, limit=limit)
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        return {}, True
    near = {hit.id: hit.similarity for hit in hits}
    missing = [found for found in also if found not in near]
    return near | await ledger.memories.similarity(missing, vector, embedder=embedder.name), False
