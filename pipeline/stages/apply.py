"""apply: decisions -> memories, history and receipts in one fenced transaction, then the vectors.

The transaction is the effect; it happens once. The vectors are a projection of it: written before
the stage ends, so that SUCCEEDED means visible, and repaired by the sweeper if the process dies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.domain import Activation, Batch, Decision, Fact, StageName
from pipeline.ledger.changes import Write
from pipeline.ledger.memories import Memories
from pipeline.outputs import (
    Applied,
    Consolidated,
    Extracted,
    Retrieved,
    dump,
    read,
    read_if_any,
    unpack,
)
from pipeline.ports import Embedder, Vector
from pipeline.stages import Finished
from pipeline.stages.consolidate import new_memory_id
from pipeline.vectors import VectorIndex


async def apply(
    activation: Activation,
    batch: Batch,
    *,
    embedder: Embedder,
    index: VectorIndex,
    memories: Memories,
    graph: bool,
) -> Finished:
    applied = read_if_any(batch, Applied)
    if applied is None:
        writes = await _writes(batch, embedder)
        applied = await memories.apply(activation, batch, writes, embedder=embedder.name)
    await index.catch_up(applied.touched)
    relates = graph and batch.options.infer and applied.changed
    return Finished(dump(applied), next_stage=None if relates else StageName.SETTLE)


async def _writes(batch: Batch, embedder: Embedder) -> list[Write]:
    facts = read(batch, Extracted).facts
    decisions = read(batch, Consolidated).decisions
    packed = read(batch, Retrieved).vectors
    reworded = await _reworded(facts, decisions, embedder)
    return [
        _write(batch, facts[d.fact], d, unpack(packed[d.fact]), reworded.get(d.fact))
        for d in decisions
    ]


async def _reworded(
    facts: Sequence[Fact], decisions: Sequence[Decision], embedder: Embedder
) -> Mapping[int, Vector]:
    """Vectors of the texts a model worded anew, by fact; all others have one since retrieve."""
    texts = {d.fact: d.text for d in decisions if d.text and d.text != facts[d.fact].text}
    vectors = await embedder.embed(list(texts.values())) if texts else []
    return dict(zip(texts, vectors, strict=True))


def _write(
    batch: Batch, fact: Fact, decision: Decision, said: Vector, reworded: Vector | None
) -> Write:
    event = batch.events[fact.source.event]
    return Write(
        fact=decision.fact,
        outcome=decision.outcome,
        text=decision.text or fact.text,
        fact_text=fact.text,
        reason=decision.reason,
        target=decision.memory_id,
        new_id=new_memory_id(batch, fact, decision.fact),
        vector=reworded or said,
        fact_vector=said,
        event=event,
        message_ordinal=fact.source.message,
        attributed_to=fact.attributed_to,
        said_at=event.messages[fact.source.message].said_at,
    )
