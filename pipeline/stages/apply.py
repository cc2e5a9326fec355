"""apply: decisions -> memories, history and receipts in one fenced transaction, then the vectors.

The transaction is the effect; it happens once. The vectors are a projection of it: written before
the stage ends, so that SUCCEEDED means visible, and repaired by the sweeper if the process dies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.domain import Activation, Batch, Decision, Fact, Outcome, StageName
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
    vectors = await _vectors(batch, facts, decisions, embedder)
    return [_write(batch, facts[d.fact], d, vectors.get(d.fact)) for d in decisions]


async def _vectors(
    batch: Batch, facts: Sequence[Fact], decisions: Sequence[Decision], embedder: Embedder
) -> Mapping[int, Vector]:
    """A vector for each text that may be stored: the fact's own, or a new one where the model
    worded it anew.
    """
    packed = read(batch, Retrieved).vectors
    vectors: dict[int, Vector] = {}
    reworded: list[tuple[int, str]] = []
    for decision in decisions:
        if decision.outcome not in (Outcome.ADD, Outcome.UPDATE):
            continue
        if decision.text in (None, facts[decision.fact].text):
            vectors[decision.fact] = unpack(packed[decision.fact])
        else:
            reworded.append((decision.fact, decision.text or ""))
    if reworded:
        fresh = await embedder.embed([text for _, text in reworded])
        vectors |= {fact: vector for (fact, _), vector in zip(reworded, fresh, strict=True)}
    return vectors


def _write(batch: Batch, fact: Fact, decision: Decision, vector: Vector | None) -> Write:
    event = batch.events[fact.source.event]
    return Write(
        fact=decision.fact,
        outcome=decision.outcome,
        text=decision.text or fact.text,
        fact_text=fact.text,
        reason=decision.reason,
        target=decision.memory_id,
        new_id=new_memory_id(batch, fact, decision.fact),
        vector=vector,
        event=event,
        message_ordinal=fact.source.message,
        attributed_to=fact.attributed_to,
        said_at=event.messages[fact.source.message].said_at,
    )
