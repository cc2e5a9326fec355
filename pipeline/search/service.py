"""Search: a query -> ranked facts and turns, and the relations around them.

    words  ──► by words (the ledger)  ─┐
    vector ──► by meaning (the index) ─┴─► candidates ─► placed: who, when, beside what (the ledger)
                                                            │
    answer ◄── read (the ledger) ◄── the best ◄── fused ◄───┘
                                       └─ reranked, on request

Both indexes only propose; the ledger decides what exists, what it says and who may see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import structlog

from pipeline.domain.errors import Overloaded, TransientError
from pipeline.domain.events import FailureCode
from pipeline.domain.filters import Filter, pinned
from pipeline.domain.memories import Memory
from pipeline.domain.passages import PassageKey, Turn
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.events.store import Standing
from pipeline.graph.store import RelationView
from pipeline.models.circuit_breaker import on_behalf_of
from pipeline.ports import Embedder, Reranker
from pipeline.search.calibration import IDENTITY, Scale
from pipeline.search.concurrency import Turnstile
from pipeline.search.cutoff import Selection
from pipeline.search.dense import Asked, Meaning, Near, is_short, nearest, widened
from pipeline.search.explain import Explained, Ranking, explain
from pipeline.search.fusion import Score, Signals, Weights, fuse, ranked
from pipeline.search.ports import SearchStores
from pipeline.search.rerank import Outcome, rerank
from pipeline.search.sessions import places
from pipeline.search.store import Placed, Where
from pipeline.text import dates, terms
from pipeline.text.speakers import named
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

# Candidates a channel brings: enough that a good memory in either list is not cut before fusion.
# Source: the anchor recipe's joint pool; 100 a channel find 0.8 points less within 400 words.
WIDEN, AT_LEAST = 4, 200
RELATIONS = 10
LONGEST_S = 60.0
# Somebody waits for a search: past this it goes by words alone.
EMBEDDER_TIMEOUT_S = 5.0
LOCAL = "local/"
TOOK_TOO_LONG = f"The search was stopped after {LONGEST_S:.0f} s: narrow its filter or top_k."
HALF_LIFE = timedelta(days=30)
OPEN = Turnstile()
ANY_TIME = datetime(2000, 6, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Query:
    """`threshold` is compared with the semantic score (0..1), which is the cosine on the embedder's
    `scale`; 0 lets everything through.

    `keyword_search` lets pass what holds a word of the question, `filter_memories` cuts what is far
    behind the best (see pipeline/search/cutoff), `rerank` asks the reranker.

    `now`: when the question is asked, for "last week"; None is this moment. `around`: how many
    turns before and after each hit. `explain`: ids to say of what became of them; None
    means the best that were cut.
    """

    text: str
    filter: Filter
    top_k: int
    threshold: float
    show_expired: bool = False
    facts: bool = True
    turns: bool = False
    now: datetime | None = None
    around: int = 0
    explain: Sequence[UUID] | None = ()
    keyword_search: bool = False
    filter_memories: bool = False
    rerank: bool = False
    weights: Weights = field(default_factory=Weights)
    scale: Scale = IDENTITY


@dataclass(frozen=True, slots=True)
class Hit:
    """`around`: the turns before and after it, oldest first, as many as were asked for."""

    found: Memory | Turn
    score: Score
    around: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """`degraded`: the dense channel could not be asked, so only words were compared. `incomplete`:
    the filter matches more than is compared exactly, and fewer than `top_k` of the nearest.

    `pending`: how many events of the ids that the filter pins had not ended; None where it pins
    none. `reranked`, and where that was asked for in vain, `not_reranked`: why.
    """

    hits: Sequence[Hit]
    relations: Sequence[RelationView]
    degraded: bool
    pending: int | None
    explained: Sequence[Explained] = ()
    reranked: bool = False
    not_reranked: str | None = None
    incomplete: bool = False


async def search(
    project_id: ProjectId,
    query: Query,
    *,
    ledger: SearchStores,
    embedder: Embedder,
    index: VectorIndex,
    turns: VectorIndex | None = None,
    reranker: Reranker | None = None,
    turnstile: Turnstile = OPEN,
    embedder_timeout_s: float = EMBEDDER_TIMEOUT_S,
) -> Found:
    """`index` is that of memories, `turns` that of turns; without it these are found by words.

    A remote embedder that gives no vector within `embedder_timeout_s` leaves the search to words.

    Errors: Overloaded after a minute.
    """
    # Before the turnstile: a model elsewhere computes nothing here. And the pending events are
    # counted before anything is read: none pending means that nothing is missing below.
    vector, standing = await asyncio.gather(
        _vector(project_id, query.text, embedder, embedder_timeout_s),
        _standing(project_id, query, ledger),
    )
    near = Near(ledger, embedder, index, turns)
    try:
        async with asyncio.timeout(LONGEST_S), turnstile.turn():
            return await _search(project_id, query, vector, standing, near, reranker)
    except TimeoutError:
        raise Overloaded(TOOK_TOO_LONG, retry_after_s=1, server_wide=True) from None


async def _standing(project_id: ProjectId, query: Query, ledger: SearchStores) -> Standing | None:
    """The state of the lanes that the filter pins; None where it pins none."""
    ids = pinned(query.filter)
    return await ledger.events.standing(project_id, ids) if ids else None


async def _search(
    project_id: ProjectId,
    query: Query,
    vector: Vector,
    standing: Standing | None,
    near: Near,
    reranker: Reranker | None,
) -> Found:
    ledger = near.ledger
    fused, meaning = await _rank(project_id, query, vector, near)
    outcome = Outcome(fused)
    if query.rerank:
        outcome = await rerank(query.text, fused, reranker=reranker, passages=ledger.passages)
    ranking = outcome.ranking
    hits = await _read(query, ranking, ledger)
    related = standing is not None and standing.related
    relations = await _relations(project_id, query, hits, ledger) if related else ()
    explained = await explain(project_id, query.explain, ranking, ledger)
    return Found(
        hits,
        relations,
        degraded=meaning.degraded,
        pending=standing.pending if standing else None,
        explained=explained,
        reranked=outcome.reranked,
        not_reranked=outcome.reason,
        incomplete=meaning.incomplete,
    )


async def _relations(
    project_id: ProjectId, query: Query, hits: Sequence[Hit], ledger: SearchStores
) -> Sequence[RelationView]:
    """The relations around the query and what it found."""
    texts = [hit.found.text for hit in hits]
    ids = pinned(query.filter)
    return await ledger.graph.near(project_id, ids, query.text, texts, limit=RELATIONS)


async def _rank(
    project_id: ProjectId, query: Query, vector: Vector, near: Near
) -> tuple[Ranking, Meaning]:
    where = Where.of(
        project_id, query.filter, facts=query.facts, turns=query.turns, expired=query.show_expired
    )
    least = query.scale.cosine(query.threshold)
    asked = Asked(project_id, query.filter, where, vector, least, query.top_k)
    limit = max(WIDEN * query.top_k, AT_LEAST)
    words, meaning = await asyncio.gather(
        near.ledger.passages.by_words(where, terms.asked(query.text), limit=limit),
        nearest(asked, near, limit=limit),
    )
    candidates = await _candidates(query, where, words, meaning, near)
    if is_short(meaning, candidates, asked):
        meaning = await widened(meaning, asked, near, limit=limit)
        candidates = await _candidates(query, where, words, meaning, near)
    cosines = _cosines(candidates, meaning)
    # Whether a question names a time does not depend on when it is asked.
    dated = bool(dates.spans(query.text, ANY_TIME))
    # The time of the question is read only where it matters.
    now = (query.now or await near.ledger.now()) if dated or query.weights.recency else None
    signals = _signals(query, candidates, words, cosines, now)
    given = _given(query, signals, meaning, now, dated=dated)
    scores = fuse(signals, query.weights, given)
    selection = Selection(
        query.top_k,
        threshold=0.0 if meaning.degraded else query.threshold,
        by_words=query.keyword_search,
        strict=query.filter_memories,
        bare={one.key for one in candidates if one.key.is_turn and one.key not in cosines},
    )
    return Ranking(where, scores, ranked(scores), selection), meaning


async def _read(query: Query, ranking: Ranking, ledger: SearchStores) -> list[Hit]:
    best = ranking.best()
    read = await ledger.passages.read(ranking.where.project_id, best)
    around = await ledger.passages.around(ranking.where.project_id, best, turns=query.around)
    return [Hit(read[key], ranking.scores[key], around.get(key, ())) for key in best if key in read]


def _recency(at: datetime, now: datetime) -> float:
    """1 for what is new, half of it for each month of age."""
    return float(0.5 ** (max(timedelta(), now - at) / HALF_LIFE))


async def _vector(project_id: ProjectId, text: str, embedder: Embedder, limit_s: float) -> Vector:
    """Empty where the model does not answer; a remote one has `limit_s`."""
    try:
        async with asyncio.timeout(None if embedder.name.startswith(LOCAL) else limit_s):
            with on_behalf_of(project_id):
                [vector] = await embedder.embed([text])
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        return NO_VECTOR
    except TimeoutError:
        log.warning("search_degraded", code=FailureCode.LLM_UNAVAILABLE, limit_s=limit_s)
        return NO_VECTOR
    return vector


async def _candidates(
    query: Query,
    where: Where,
    words: Mapping[PassageKey, float],
    meaning: Meaning,
    near: Near,
) -> list[Placed]:
    """What either channel found and the ledger holds."""
    lacking = [key for key in words if key not in meaning.cosines and near.compares(key)]
    keys = list(dict.fromkeys([*words, *meaning.cosines]))
    related = query.text if query.weights.graph else None
    return await near.ledger.passages.placed(
        where,
        keys,
        embedded=[] if meaning.degraded else lacking,
        embedder=near.embedder.name,
        related_to=related,
    )


def _cosines(candidates: Sequence[Placed], meaning: Meaning) -> Mapping[PassageKey, float]:
    """What the dense channel said, and what is compared here because only words found it."""
    here = [one for one in candidates if one.embedding and one.key not in meaning.cosines]
    if not here:
        return meaning.cosines
    stored = np.frombuffer(b"".join(one.embedding or b"" for one in here), np.float32)
    compared = stored.reshape(len(here), -1) @ np.asarray(meaning.vector, np.float32)
    keys = (one.key for one in here)
    return {**meaning.cosines, **dict(zip(keys, compared.tolist(), strict=True))}


def _signals(
    query: Query,
    candidates: Sequence[Placed],
    words: Mapping[PassageKey, float],
    cosines: Mapping[PassageKey, float],
    now: datetime | None,
) -> dict[PassageKey, Signals]:
    times = dates.spans(query.text, now) if now else ()
    speaker = named(query.text, {one.speaker for one in candidates if one.speaker})
    where = places(candidates)
    near = [cosines.get(one.key) for one in candidates]
    calibrated = query.scale.scores([-1.0 if cosine is None else cosine for cosine in near])
    return {
        one.key: Signals(
            semantic=_share(cosine or 0.0),
            lexical=words.get(one.key, 0.0),
            speaker=float(speaker is not None and one.speaker == speaker),
            date=dates.closeness(times, one.at) if times else 0.0,
            recency=_recency(one.at, now) if now else 0.0,
            graph=float(one.related),
            place=where[one.key],
            calibrated=0.0 if cosine is None else score,
        )
        for one, cosine, score in zip(candidates, near, calibrated, strict=True)
    }


def _given(
    query: Query,
    signals: Mapping[PassageKey, Signals],
    meaning: Meaning,
    now: datetime | None,
    *,
    dated: bool,
) -> set[str]:
    """The terms that an answer to this question can earn."""
    can_have = {
        "dense": not meaning.degraded,
        "lexical": bool(terms.asked(query.text)),
        "speaker": any(one.speaker for one in signals.values()),
        "date": dated,
        "recency": now is not None,
        "graph": any(one.graph for one in signals.values()),
    }
    return {term for term, can in can_have.items() if can}


def _share(cosine: float) -> float:
    return max(0.0, min(1.0, cosine))
