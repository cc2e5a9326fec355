"""Search: a query -> ranked facts and turns, and the relations around them.

    words  ──► by words (the ledger)  ─┐
    vector ──► nearest (the index)    ─┴─► candidates (the ledger) ─► located ─► signals ─► fused
                                                                                              │
    SearchResult ◄── hits (the ledger) ◄── cutoff ◄── reranked and evidence, on request ◄─────┘

Both indexes only propose; the ledger decides which passages exist, match and are the project's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog

from pipeline.cpu_thread import beside_loop, searching
from pipeline.domain.decay import Decay
from pipeline.domain.errors import Overloaded, StageError, TransientError
from pipeline.domain.events import FailureCode
from pipeline.domain.filters import pinned
from pipeline.domain.memories import Memory
from pipeline.domain.passages import PassageKey, Turn
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.events.store import LaneStates
from pipeline.graph.chains import Near, chains, unknown_phrases
from pipeline.graph.meanings import by_embedder, by_facts
from pipeline.graph.ranking import shares
from pipeline.graph.views import GraphPath, GraphTimes, Walk
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.models.circuit_breaker import on_behalf_of
from pipeline.ports import Embedder, Reranker
from pipeline.search.candidates import Candidate
from pipeline.search.concurrency import ConcurrencyLimit, SearchPlace
from pipeline.search.conversation import blended
from pipeline.search.dense import DenseHits, DenseQuery, DenseStores, is_short, nearest, widened
from pipeline.search.explain import Explained, explain
from pipeline.search.ports import SearchStores
from pipeline.search.query import Query
from pipeline.search.ranking.cutoff import Cutoff
from pipeline.search.ranking.evidence import set_closeness, set_evidence
from pipeline.search.ranking.fusion import fuse
from pipeline.search.ranking.latest import Hit, latest_first
from pipeline.search.ranking.links import near_answers, with_links
from pipeline.search.ranking.rerank import Reranking, rerank
from pipeline.search.ranking.sessions import locate
from pipeline.search.ranking.signals import ChannelScores, names_time, set_signals
from pipeline.search.store import WordHits
from pipeline.search.where import Where
from pipeline.text.question_topics import NO_TOPICS, Topics, topics
from pipeline.text.questions import has_known_question_words
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

T = TypeVar("T")

# Candidates of each channel, per result and at least: enough that a good memory in either list is
# not lost before fusion. Source: the anchor recipe's joint pool; with 100, recall within 400 words
# is 0.8 points lower.
WIDEN, AT_LEAST = 4, 200
RELATIONS = 10
# Number of the best candidates among which the default cut measures evidence.
MEASURED = 50
# Most candidates, and most of their words, that are ranked on the event loop: up to 10 ms.
INLINE_CANDIDATES, INLINE_WORDS = 400, 10_000
LONGEST_S = 60.0
# If the graph takes longer, the search returns no relations.
GRAPH_TIMEOUT_S = 2.0
# If the comparison of words takes longer, the search compares meanings alone.
WORDS_TIMEOUT_S = 5.0
LOCAL = "local/"
NOT_COMPARED = (
    "Neither words nor meanings could be compared in time: narrow the filter, or try again."
)


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Searches at once, and seconds for a remote embedder; without an answer words are compared."""

    at_once: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    embedder_s: float = 5.0


NO_LIMITS = SearchLimits()


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """Vector of a query; for evidence also its topics, and the vectors of their words by terms."""

    vector: Vector
    topics: Topics
    meanings: Mapping[tuple[str, ...], Vector]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The candidates of all channels, best first, and the results of each channel."""

    where: Where
    lane_states: LaneStates | None
    candidates: Sequence[Candidate]
    words: WordHits
    dense: DenseHits
    walk: Walk | None


class DegradedPart(StrEnum):
    """Part of a search that did not answer: only the others were compared."""

    MEANING = "meaning"
    WORDS = "words"
    RELATIONS = "relations"
    RERANK = "rerank"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    `degraded_parts`: parts that did not answer, or not for all passages. `incomplete`: the filter
    matches more passages than can be compared exactly, and fewer than `top_k` of the nearest.

    `bounded_parts`: parts that did not compare all passages, because the scope is large.

    `pending`: number of unfinished events with the ids that the filter pins; None if it pins none.
    `reranked`: the reranker ordered the hits; `not_reranked`: the reason if it did not, on request.
    `left_out`: ranks of the results that the default cut left out, from 1.
    """

    hits: Sequence[Hit]
    relations: Sequence[GraphPath]
    degraded_parts: Sequence[DegradedPart]
    pending: int | None
    explained: Sequence[Explained] = ()
    reranked: bool = False
    not_reranked: str | None = None
    incomplete: bool = False
    left_out: Sequence[int] = ()
    bounded_parts: Sequence[DegradedPart] = ()

    @property
    def degraded(self) -> bool:
        """True if a part of the search did not answer."""
        return bool(self.degraded_parts)


async def search(
    project_id: ProjectId,
    query: Query,
    *,
    ledger: SearchStores,
    embedder: Embedder,
    index: VectorIndex,
    turns: VectorIndex | None = None,
    reranker: Reranker | None = None,
    limits: SearchLimits = NO_LIMITS,
) -> SearchResult:
    """Search a project's memories, and its turns if the query asks for them.

    `index` has the memories, `turns` the turns; without it, turns are found by words alone. So is
    everything if a remote embedder returns no vector within `limits.embedder_s`.

    Errors: Overloaded after a minute, with what the search waits for then.
    """
    stores = DenseStores(ledger, embedder, index, turns)
    async with limits.at_once.place(project_id, within_s=LONGEST_S) as place:
        ranking = await _ranking(project_id, query, stores, limits.embedder_s, place)
        return await _result(project_id, query, ranking, ledger, reranker, place)


async def _ranking(
    project_id: ProjectId,
    query: Query,
    stores: DenseStores,
    embedder_s: float,
    place: SearchPlace,
) -> _Ranking:
    """Rank the candidates in one turn, or in two if the embedder is slower than the words.

    Words need no vector: they are compared while the embedder computes. If it is a remote one that
    takes longer, the search leaves its place to another one.
    """
    where, words = query.where(project_id), None
    embedding = asyncio.create_task(_embed(project_id, query, stores.embedder, embedder_s))
    try:
        # Pending events are counted before anything is read: if there are none, the results are
        # complete.
        lane_states = await _lane_states(project_id, query, stores)
        ranked = partial(_ranked, project_id, query, stores, where, lane_states)
        async with place.turn():
            words = asyncio.create_task(_by_words(where, query, stores.ledger))
            await asyncio.wait([words, embedding], return_when=asyncio.FIRST_COMPLETED)
            if embedding.done():
                return await ranked(words, await embedding)
            await words  # raises its error now
        if not stores.embedder.name.startswith(LOCAL):
            async with place.away():
                await asyncio.wait([embedding])
        embedded = await embedding
        async with place.turn():
            return await ranked(words, embedded)
    finally:
        for task in (embedding, words):
            if task is not None:
                task.cancel()


async def _lane_states(
    project_id: ProjectId, query: Query, stores: DenseStores
) -> LaneStates | None:
    """Return the state of the lanes that the filter pins; None if it pins none."""
    ids = pinned(query.filter)
    if not ids:
        return None
    reads = stores.ledger.events
    return await reads.lane_states(project_id, ids, embedder=stores.embedder.name)


async def _result(
    project_id: ProjectId,
    query: Query,
    ranking: _Ranking,
    ledger: SearchStores,
    reranker: Reranker | None,
    place: SearchPlace,
) -> SearchResult:
    """Cut the ranking, and read what remains. A remote reranker is asked without the place."""
    where, ranked, walk = ranking.where, ranking.candidates, ranking.walk
    words, dense = ranking.words, ranking.dense
    cutoff = _cutoff(query, words, dense)
    reranking = Reranking(ranked)
    if query.rerank:
        reranking = await rerank(
            query.whole_text,
            ranked,
            cutoff,
            where=where,
            reranker=reranker,
            passages=ledger.passages,
            away=place.away(),
        )
    best = cutoff.best(reranking.ranked)
    near = near_answers(query.text, best, ranked[:MEASURED]) if cutoff.lenient else []
    hits = await _hits(where, [*best, *(each.candidate for each in near)], query.around, ledger)
    if near:
        hits = with_links(hits, best, near, ranked)[: query.top_k]
    if not reranking.reranked and not names_time(query.text):
        hits = latest_first(hits)
    relations = await _relations(project_id, walk, hits, ledger)
    is_degraded = {
        DegradedPart.MEANING: dense.degraded or dense.partial,
        DegradedPart.WORDS: words.degraded,
        DegradedPart.RELATIONS: relations is None or (walk is not None and walk.incomplete),
        DegradedPart.RERANK: reranking.failed,
    }
    return SearchResult(
        hits,
        relations or (),
        degraded_parts=[part for part in DegradedPart if is_degraded[part]],
        pending=ranking.lane_states.pending if ranking.lane_states else None,
        explained=await explain(query.explain, reranking.ranked, cutoff, where, ledger),
        reranked=reranking.reranked,
        not_reranked=reranking.reason,
        incomplete=dense.incomplete,
        left_out=_ranks_left_out(cutoff.first(reranking.ranked), hits),
        bounded_parts=[DegradedPart.WORDS] if words.cut else [],
    )


def _cutoff(query: Query, words: WordHits, dense: DenseHits) -> Cutoff:
    """The cut of the query; a channel that did not answer excludes nothing."""
    return Cutoff(
        query.top_k,
        threshold=0.0 if dense.degraded else query.threshold,
        by_words=query.keyword_search,
        strict=query.filter_memories,
        lenient=query.is_cut and not (dense.degraded or dense.partial or words.degraded),
    )


def _ranks_left_out(first: Sequence[Candidate], hits: Sequence[Hit]) -> list[int]:
    """The ranks, from 1, of the first results that are not returned."""
    returned = {hit.key for hit in hits}
    return [rank for rank, candidate in enumerate(first, start=1) if candidate.key not in returned]


async def _walk(
    project_id: ProjectId, query: Query, stores: DenseStores, *, related: bool
) -> tuple[Walk | None, Mapping[UUID, float]]:
    """Follow the relations of the query's names, if the scopes have any; None: no answer.

    Also the scores of the memories on the chains that the query describes.
    """
    if not related:
        return Walk(query.whole_text), {}
    times = GraphTimes(query.snapshot.as_of, query.snapshot.valid_at)
    ids, text = pinned(query.filter), query.whole_text
    walking = stores.ledger.graph.walk(
        project_id, ids, text, times=times, expired=query.show_expired
    )
    walk = await _in_time(walking)
    if walk is None or not query.weights.chain:
        return walk, {}
    return walk, chains(walk, await _meanings(project_id, query, walk, stores))


async def _meanings(project_id: ProjectId, query: Query, walk: Walk, stores: DenseStores) -> Near:
    """The relations that words of the query mean although they are none of their names."""
    near: Near = {}
    if words := [word for phrase in unknown_phrases(walk) for word in phrase]:
        stating = {path.relation.memory_id for path in walk.paths if path.relation.memory_id}
        reading = stores.ledger.graph.terms_of(project_id, list(stating))
        near = by_facts(walk, words, await _in_time(reading) or {})
    if query.has_known_meaning and (phrases := unknown_phrases(walk, near)):
        with searching(project_id):
            meant = await by_embedder(walk, phrases, stores.embedder)
        near = {**near, **meant}
    return near


async def _relations(
    project_id: ProjectId, walk: Walk | None, hits: Sequence[Hit], ledger: SearchStores
) -> Sequence[GraphPath] | None:
    """Relations that answer the query; None if the graph does not answer in time."""
    if walk is None or not walk.scopes:
        return None if walk is None else ()
    memory_ids = [hit.passage.id for hit in hits if isinstance(hit.passage, Memory)]
    return await _in_time(ledger.graph.near(project_id, walk, memory_ids, limit=RELATIONS))


async def _in_time(reading: Awaitable[T]) -> T | None:
    """Read from the graph; None if it does not answer in time."""
    try:
        async with asyncio.timeout(GRAPH_TIMEOUT_S):
            return await reading
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
    except TimeoutError:
        log.warning("search_degraded", code=FailureCode.STORE_UNAVAILABLE, limit_s=GRAPH_TIMEOUT_S)
    return None


async def _ranked(
    project_id: ProjectId,
    query: Query,
    stores: DenseStores,
    where: Where,
    lane_states: LaneStates | None,
    by_words: Awaitable[WordHits],
    embedded: EmbeddedQuery,
) -> _Ranking:
    """Compare meanings, and rank the candidates of all channels.

    `by_words`: the comparison of words, which may still run. `lane_states`: see `_lane_states`.
    Errors: Overloaded if neither words nor meanings were compared.
    """
    related = lane_states is not None and (lane_states.related or not where.is_current)
    dense_query = DenseQuery(
        project_id,
        query.filter,
        where,
        embedded.vector,
        least=query.scale.cosine(query.threshold),
        enough=query.top_k,
        stale=lane_states is None or lane_states.stale,
        few=lane_states is not None and lane_states.few,
    )
    limit = _limit(query)
    words, dense, (walk, on_chains) = await asyncio.gather(
        by_words,
        nearest(dense_query, stores, limit=limit),
        _walk(project_id, query, stores, related=related and query.graph),
    )
    if words.degraded and dense.degraded:
        raise Overloaded(NOT_COMPARED, retry_after_s=1, server_wide=True)
    on_paths = shares(walk) if walk and query.weights.graph else {}
    candidates = await _candidates(query, where, words, dense, on_paths, stores)
    if is_short(dense, candidates, dense_query):
        dense = await widened(dense, dense_query, stores, limit=limit)
        candidates = await _candidates(query, where, words, dense, on_paths, stores)
    needs_time = query.weights.recency or query.decay or names_time(query.text)
    now = (query.now or await stores.ledger.now()) if needs_time else None
    if query.decay and now:
        await _set_decay(project_id, candidates, query.decay, now, stores.ledger)

    def rank() -> list[Candidate]:
        locate(candidates)
        can_earn = set_signals(
            candidates,
            query.turns_asked,
            ChannelScores(words.shares, dense.cosines, dense.vector, on_paths, on_chains),
            scale=query.scale,
            now=now,
        )
        ranked = fuse(candidates, query.weights, can_earn)
        _measure(ranked, query, embedded, dense)
        return ranked

    ranked = await beside_loop(rank, inline=_is_small(candidates, query))
    return _Ranking(where, lane_states, ranked, words, dense, walk)


def _is_small(candidates: Sequence[Candidate], query: Query) -> bool:
    """Tell if the candidates can be ranked on the event loop."""
    speakers = sum(len(candidate.speaker or "") for candidate in candidates)
    words = sum(len(candidate.terms) for candidate in candidates) + speakers // 6
    few = len(candidates) <= INLINE_CANDIDATES and words <= INLINE_WORDS
    return few and sum(map(len, query.turns_asked)) <= INLINE_WORDS


def _measure(
    ranked: Sequence[Candidate], query: Query, embedded: EmbeddedQuery, dense: DenseHits
) -> None:
    """Set closeness and evidence of the candidates, if the query needs them."""
    if query.is_cut or query.explain is None or query.explain:
        set_closeness(ranked)
    if query.measures_evidence:
        set_evidence(
            ranked[:MEASURED] if query.is_cut else ranked,
            embedded.topics,
            question=dense.vector,
            meanings=embedded.meanings,
            by_closeness=query.is_cut and query.has_known_meaning,
            # The conversation before a question says what its words are about.
            count_unknown=has_known_question_words(query.text) and not query.earlier,
        )


def _limit(query: Query) -> int:
    """Most candidates of a channel."""
    return max(WIDEN * query.top_k, AT_LEAST)


async def _by_words(where: Where, query: Query, ledger: SearchStores) -> WordHits:
    """Passages with words of the query; `degraded` if PostgreSQL does not answer in time."""
    try:
        async with asyncio.timeout(WORDS_TIMEOUT_S):
            return await ledger.passages.by_words(
                where, query.terms, limit=_limit(query), with_terms=query.measures_evidence
            )
    except LedgerUnavailable as error:
        if not error.out_of_time:
            raise
    except TimeoutError:
        pass
    log.warning("search_degraded", code=FailureCode.STORE_UNAVAILABLE, part=DegradedPart.WORDS)
    return WordHits({}, {}, degraded=True)


async def _set_decay(
    project_id: ProjectId,
    candidates: Sequence[Candidate],
    decay: Decay,
    now: datetime,
    ledger: SearchStores,
) -> None:
    """Set the decay of each candidate; turns have no accesses."""
    facts = [candidate.key.id for candidate in candidates if not candidate.key.is_turn]
    accesses = await ledger.accesses.of(project_id, facts)
    for candidate in candidates:
        own = None if candidate.key.is_turn else accesses.get(candidate.key.id)
        candidate.decay = decay.factor(candidate.at, own, now)


async def _candidates(
    query: Query,
    where: Where,
    words: WordHits,
    dense: DenseHits,
    on_paths: Mapping[UUID, float],
    stores: DenseStores,
) -> list[Candidate]:
    """Return the passages that a channel proposed and the ledger has.

    Those that the words' hits have with all that is needed are not read again.
    """
    cosines = dense.cosines
    related = [PassageKey(memory_id) for memory_id in on_paths] if query.facts else []
    keys = list(dict.fromkeys([*words.shares, *cosines, *related]))
    without_cosine = [] if dense.degraded else [key for key in keys if key not in cosines]
    compared = keys if query.filter_memories else without_cosine
    embedded = [key for key in compared if stores.has_vector(key)]
    unread = {*embedded, *(key for key in keys if key not in words.candidates)}
    if query.filter_memories:
        unread.update(keys)
    read = await stores.ledger.passages.candidates(
        where,
        [key for key in keys if key in unread],
        embedded=embedded,
        embedder=stores.embedder.name,
        with_terms=query.measures_evidence,
    )
    for candidate in read:
        if by_words := words.candidates.get(candidate.key):
            candidate.words, candidate.parts = by_words.words, by_words.parts
    return [words.candidates[key] for key in keys if key not in unread] + read


async def _hits(
    where: Where, best: Sequence[Candidate], around: int, ledger: SearchStores
) -> list[Hit]:
    """Return the best candidates with their texts; those deleted in the meantime are left out."""
    passages = await ledger.passages.read(where, [candidate.key for candidate in best])
    sources = {
        key: key if where.is_current else _source(key, passage) for key, passage in passages.items()
    }
    keys = list(dict.fromkeys(sources.values()))
    turns = await ledger.passages.around(where.project_id, keys, turns=around)
    return [
        Hit(
            candidate.key,
            passages[candidate.key],
            candidate.score,
            turns.get(sources[candidate.key], ()),
            candidate.in_dialogue,
        )
        for candidate in best
        if candidate.key in passages
    ]


def _source(key: PassageKey, passage: Memory | Turn) -> PassageKey:
    """Return the key of the turn from which a past state was extracted, or else its own."""
    if isinstance(passage, Turn) or passage.event_id is None or passage.message_ordinal is None:
        return key
    return PassageKey(passage.event_id, passage.message_ordinal)


async def _embed(
    project_id: ProjectId, query: Query, embedder: Embedder, limit_s: float
) -> EmbeddedQuery:
    """Embed the question with the turns before it, and for strict evidence its content words.

    All in one request; a remote model has `limit_s` seconds. NO_VECTOR if it does not answer, or if
    it refuses the question, such as one that is too long for it.
    """
    parts = topics(query.text) if query.measures_evidence else NO_TOPICS
    words = {word.terms: word.text for part in parts.words for word in part}
    if not query.filter_memories or not query.has_known_meaning:
        words = {}
    texts = [*query.turns_asked, *words.values()]
    try:
        async with asyncio.timeout(None if embedder.name.startswith(LOCAL) else limit_s):
            with on_behalf_of(project_id), searching(project_id):
                vectors = await embedder.embed(texts)
    except StageError as error:
        log.warning("search_degraded", code=error.code)
    except TimeoutError:
        log.warning("search_degraded", code=FailureCode.LLM_UNAVAILABLE, limit_s=limit_s)
    else:
        turns = len(query.turns_asked)
        meanings = dict(zip(words, vectors[turns:], strict=True))
        return EmbeddedQuery(blended(vectors[:turns]), parts, meanings)
    return EmbeddedQuery(NO_VECTOR, parts, {})
