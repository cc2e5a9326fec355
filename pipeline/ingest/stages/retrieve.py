"""retrieve: facts -> vectors, and the stored memories they may repeat, refine or contradict.

Decisions depend on these memories, so a scope that is not too large is compared completely, from
the ledger: an index may miss memories, be stale or be down. They are chosen by meaning, words and
slots: see pipeline/domain/consolidation/candidates.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

from pipeline.cpu_thread import beside_loop
from pipeline.domain.consolidation.candidates import Compared, chosen, ranked, slots_beside
from pipeline.domain.consolidation.cosine_scale import FAR_UNKNOWN, MOST_VECTORS, far_below
from pipeline.domain.events import StageName
from pipeline.domain.facts import Fact, MemoryType, Neighbour
from pipeline.domain.lanes import Batch
from pipeline.domain.scope import Scope
from pipeline.domain.stage_outputs import Extracted, Retrieved, dump, read
from pipeline.domain.vectors import Vector, pack
from pipeline.ingest.ports import ScopeWords
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.appended import is_compared
from pipeline.ingest.stages.settled import may_echo, settle
from pipeline.memories.store import Memories
from pipeline.ports import Embedder
from pipeline.text import terms
from pipeline.text.equality import text_hash
from pipeline.text.speakers import unsigned
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.index import compared as cosines_of

# Largest scope that is compared completely: half a megabyte, and not slower than the index.
MOST_EXACT = 300
# In a larger scope: memories that the index finds for each one shown, and the maximum number
# that is compared by words and slots.
INDEX_REACH, MOST_COMPARED = 4, 400
# Pairs of facts and memories that are compared on the event loop, in a few milliseconds.
INLINE_PAIRS = 2_000


async def retrieve(
    batch: Batch,
    *,
    embedder: Embedder,
    index: VectorIndex,
    memories: Memories,
    words: ScopeWords,
    limit: int,
) -> Finished:
    """Embed the facts and find the memories to show: `limit` for one fact, more for several."""
    extracted = read(batch, Extracted)
    facts = extracted.facts
    texts = [fact.text for fact in facts]
    vectors = await embedder.embed([_without_speaker(batch, fact) for fact in facts])
    around = await memories.around(batch.scope, texts)
    neighbours: tuple[Neighbour, ...] = ()
    far = FAR_UNKNOWN
    compared = _compared(batch, extracted)
    if compared and not around.empty:
        hits, far = await _candidates(
            batch.scope,
            [facts[i] for i in compared],
            [vectors[i] for i in compared],
            embedder,
            index,
            memories,
            words,
            limit=limit,
        )
        neighbours = await _current(batch, around.known, hits, memories)
    unsettled = Retrieved(
        vectors=tuple(pack(vector) for vector in vectors),
        known=tuple(around.known.get(text_hash(text)) for text in texts),
        neighbours=neighbours,
        far=far,
    )
    pairs = len(facts) * (len(facts) + len(neighbours))
    small = pairs <= INLINE_PAIRS and sum(map(len, texts)) <= terms.MOST_AT_ONCE
    retrieved = await beside_loop(lambda: settle(batch, extracted, unsettled), inline=small)
    all_settled = len(retrieved.settled or ()) == len(facts)
    return Finished(dump(retrieved), StageName.APPLY if all_settled else StageName.CONSOLIDATE)


def _compared(batch: Batch, extracted: Extracted) -> list[int]:
    """Positions of the facts to compare: all, in mode append an assistant's and ends, or none."""
    if not batch.options.infer or batch.options.procedural:
        return []
    everything = not extracted.appends
    return [
        position
        for position, fact in enumerate(extracted.facts)
        if everything or may_echo(batch, fact) or is_compared(fact)
    ]


def _without_speaker(batch: Batch, fact: Fact) -> str:
    source = batch.events[fact.source.event].messages[fact.source.message]
    return unsigned(fact.text, source.message.name)


async def _candidates(
    scope: Scope,
    facts: Sequence[Fact],
    vectors: Sequence[Vector],
    embedder: Embedder,
    index: VectorIndex,
    memories: Memories,
    words: ScopeWords,
    *,
    limit: int,
) -> tuple[Mapping[UUID, float], float]:
    """Return the candidates of all facts, each with its best cosine, and the floor of cosines.

    A small scope is compared whole from the ledger; of a large one, the memories that the index
    finds, those with a common slot, and those with the most and the rarest common words.
    """
    large = await memories.is_larger(scope, MOST_EXACT)
    read = MOST_VECTORS if large else MOST_EXACT
    rows = await memories.comparable(scope, embedder=embedder.name, limit=read)
    far = far_below([vector for _, vector in rows if vector is not None])
    number = len(rows)
    if large:
        all_terms = dict.fromkeys(term for fact in facts for term in terms.query_terms(fact.text))
        hits, (worded, number) = await asyncio.gather(
            index.nearest_in_lane(scope, vectors, limit=INDEX_REACH * limit, least=MOST_EXACT),
            words.in_scope(scope, list(all_terms), limit=MOST_COMPARED),
        )
        rows = await memories.comparable_of(
            scope,
            ids=[*hits, *worded],
            slots=list({slot for fact in facts for slot in slots_beside(fact.slot)}),
            embedder=embedder.name,
            limit=MOST_COMPARED,
        )
    packed = [(memory.id, vector) for memory, vector in rows if vector is not None]

    def best() -> Mapping[UUID, float]:
        cosines = cosines_of(packed, vectors)
        new = [Compared(f.text, f.slot, near) for f, near in zip(facts, cosines, strict=True)]
        keys = chosen(ranked(new, [memory for memory, _ in rows], rows=number), limit=limit)
        return {key: max(near.get(key, 0.0) for near in cosines) for key in keys}

    return await beside_loop(best, inline=len(facts) * len(rows) <= INLINE_PAIRS), far


async def _current(
    batch: Batch,
    known: Mapping[bytes, UUID],
    hits: Mapping[UUID, float],
    memories: Memories,
) -> tuple[Neighbour, ...]:
    """Return the hits that are active in the ledger, nearest first; stale vectors are ignored."""
    similarity = dict(hits) | dict.fromkeys(known.values(), 1.0)
    stored = await memories.active(batch.scope.project_id, list(similarity))
    return tuple(
        Neighbour(memory.id, memory.text, similarity[memory.id], memory.said_at, memory.slot)
        for memory in sorted(stored, key=lambda m: (-similarity[m.id], m.created_at, m.id))
        if memory.lane_id == batch.scope.lane_id and memory.memory_type is not MemoryType.PROCEDURAL
    )
