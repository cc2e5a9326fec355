"""retrieve: facts -> vectors and the stored memories they might repeat, refine or contradict."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pipeline.domain import Batch, Fact, Neighbour
from pipeline.ledger.changes import text_hash
from pipeline.ledger.memories import Memories
from pipeline.outputs import Extracted, Retrieved, dump, pack, read
from pipeline.ports import Embedder
from pipeline.stages import Finished
from pipeline.vectors import VectorIndex


async def retrieve(
    batch: Batch, *, embedder: Embedder, index: VectorIndex, memories: Memories, limit: int
) -> Finished:
    """`limit`: how many similar memories each fact is compared with."""
    facts = read(batch, Extracted).facts
    vectors = await embedder.embed([fact.text for fact in facts])
    known = await memories.with_texts(batch.scope, [fact.text for fact in facts])
    neighbours: tuple[Neighbour, ...] = ()
    if batch.options.infer and await memories.any_in(batch.scope):
        hits = await index.nearest_in_lane(batch.scope, vectors, limit=limit)
        neighbours = await _current(batch, facts, known, hits, memories)
    return Finished(
        dump(
            Retrieved(
                vectors=tuple(pack(vector) for vector in vectors),
                known=tuple(known.get(text_hash(fact.text)) for fact in facts),
                neighbours=neighbours,
            )
        )
    )


async def _current(
    batch: Batch,
    facts: Sequence[Fact],
    known: dict[bytes, UUID],
    hits: dict[UUID, float],
    memories: Memories,
) -> tuple[Neighbour, ...]:
    """The hits the ledger still holds, nearest first: a stale vector is never believed."""
    similarity = hits | dict.fromkeys(known.values(), 1.0)
    stored = await memories.active(batch.scope.project_id, list(similarity))
    return tuple(
        Neighbour(memory.id, memory.text, similarity[memory.id])
        for memory in sorted(stored, key=lambda m: (-similarity[m.id], m.created_at, m.id))
        if memory.lane_id == batch.scope.lane_id
    )
