"""apply: decisions -> changes of memories, their history and the receipts.

One commit writes all of them, with the lane's next stage. The vector index is written later; the
ledger knows which of its rows are stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID, uuid5

from pipeline.cpu_thread import beside_loop
from pipeline.domain.consolidation.conservation import same_statement
from pipeline.domain.consolidation.reconcile import add_instead, apply_writes
from pipeline.domain.consolidation.retire_limit import RetireLimit
from pipeline.domain.errors import Outdated
from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision, Fact, Outcome
from pipeline.domain.graph.values import FactMemory, Successor
from pipeline.domain.lanes import Batch
from pipeline.domain.memories import Memory
from pipeline.domain.modes import Mode
from pipeline.domain.stage_outputs import (
    Applied,
    Consolidated,
    Extracted,
    Retrieved,
    dump,
    mode_of,
    read,
    read_if_any,
)
from pipeline.domain.vectors import Vector, unpack
from pipeline.domain.writes import Change, ScopeMemories, Write
from pipeline.graph.store import Graph
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.settled import settled
from pipeline.ingest.stages.unrelated import unrelated
from pipeline.lanes.effects import MemoryEffects
from pipeline.memories.store import Memories
from pipeline.ports import Embedder
from pipeline.text.equality import text_hash
from pipeline.text.statements.forget_requests import asks_to_forget

# Number of times the model is called again for a memory that a person changes in the meantime;
# after that, the fact is added as a memory of its own.
MOST_RECONSIDERED = 3
# Writes that are applied on the event loop, in a few milliseconds.
INLINE_WRITES = 30


async def apply(
    batch: Batch,
    *,
    embedder: Embedder,
    memories: Memories,
    graph: Graph,
    relates: bool,
    retire_share: float,
) -> Finished:
    """Compute the changes of memories from the decisions. Errors: Outdated.

    A change that would lose something is withheld; so are deletes by one event beyond
    `retire_share` of the scope. If a person has changed a memory since the decision about it, the
    batch goes back to retrieve (Outdated), at most MOST_RECONSIDERED times. `relates`: the server
    has a graph; without a stage of it, relations end here with their memories.
    """
    writes = await _writes(batch, embedder)
    touchable = await memories.touchable(batch.scope, writes)
    stored = touchable.memories
    if outdated := _outdated(batch, writes, stored):
        if batch.reconsidered < MOST_RECONSIDERED:
            raise Outdated
        writes = [add_instead(write) if write.target in outdated else write for write in writes]
    limit = await _retire_limit(batch, writes, memories, share=retire_share)
    scope_memories = ScopeMemories.of(batch.scope, stored, touchable.forgotten, touchable.today)
    changes = await beside_loop(
        lambda: apply_writes(writes, scope_memories, limit), inline=len(writes) <= INLINE_WRITES
    )
    applied = _applied(changes, scope_memories)
    mode = mode_of(batch)
    consolidates = mode is not None and mode.mode is Mode.CONSOLIDATE
    relates = relates and batch.graph is not False and consolidates and bool(applied.changed)
    relates = relates and not batch.options.procedural
    ended = [] if relates else await unrelated(batch.scope, changes, scope_memories, graph)
    effects = MemoryEffects(changes, {m.id: m.version for m in stored}, embedder.name, ended)
    return Finished(dump(applied), StageName.RELATE if relates else None, effects=effects)


def _applied(changes: Sequence[Change], memories: ScopeMemories) -> Applied:
    """The facts to relate, each once: those that changed a memory, those that arrived after a later
    statement of the same, and those that say again what was stored as true since a later time.
    """
    by_fact: dict[int, FactMemory] = {}
    deleted = [c for c in changes if c.outcome is Outcome.DELETE]
    forgotten = {
        c.memory_id: c.write.position for c in deleted if asks_to_forget(c.write.fact.text)
    }
    for position, group in groupby(changes, key=lambda change: change.write.position):
        own = list(group)
        if all(forgotten.get(change.memory_id, -1) > position for change in own):
            continue  # a later request of the batch has it forgotten
        if (outcome := _outcome(own, memories)) is not None:
            by_fact[position] = outcome
    positions = sorted(by_fact)
    outcomes = tuple(by_fact[position] for position in positions)
    ids = tuple(outcome.memory_id for outcome in outcomes if outcome.memory_id)
    return Applied(tuple(positions), ids, outcomes)


def _outcome(changes: Sequence[Change], memories: ScopeMemories) -> FactMemory | None:
    """The memories of one fact after its changes; None if there is nothing to relate."""
    stored = [c for c in changes if c.after is not None and c.outcome is not Outcome.NOOP]
    if stored:
        # The memories that the fact changes come before those that it only repeats.
        active = [memories.active(c.memory_id) for c in (*stored, *changes)]
        texts = tuple(dict.fromkeys(memory.text for memory in active if memory is not None))
        standing = next((memory.id for memory in active if memory is not None), stored[0].memory_id)
        retired = [c.memory_id for c in stored if c.outcome is Outcome.DELETE and c.memory_id]
        beside = _beside(changes)
        added = not beside and all(c.write.outcome is Outcome.ADD for c in changes)
        return FactMemory(standing, texts, beside, tuple(retired), added=added)
    for change in changes:
        if change.after is not None and change.after.superseded_by is not None:
            later = memories.by_id[change.after.superseded_by]
            since = (
                later.valid_from if later.valid_from > change.after.valid_from else later.said_at
            )
            successor = Successor(later.text, since, later.event_id)
            return FactMemory(change.after.id, successor=successor)
        if (memory := change.before) is not None and _says_again_late(change.write, memory):
            return FactMemory(memory.id, (memory.text,), repeats=True)
    return None


def _says_again_late(write: Write, memory: Memory) -> bool:
    """True if a fact says what a memory says, and earlier than the memory holds."""
    early = (write.fact.valid_from or write.said_at) < memory.valid_from
    return early and same_statement(write.fact.text, memory.text)


def _beside(changes: Sequence[Change]) -> tuple[UUID, ...]:
    """The memories that contradict a fact and stay as they are."""
    contested = [memory.id for c in changes if c.conflict for memory in c.conflict.against]
    withheld = [target for c in changes if c.suggestion for target, _ in c.suggestion.targets]
    return tuple(dict.fromkeys([*contested, *withheld]))


async def _retire_limit(
    batch: Batch, writes: Sequence[Write], memories: Memories, *, share: float
) -> RetireLimit:
    """The limit of deletes by one event. The scope is counted only if there are several."""
    limit = RetireLimit(share)
    # A request to forget may become one.
    deletes = sum(
        write.outcome is Outcome.DELETE or asks_to_forget(write.fact.text) for write in writes
    )
    return replace(limit, size=await memories.size(batch.scope)) if deletes > limit.least else limit


def _outdated(batch: Batch, writes: Sequence[Write], stored: Sequence[Memory]) -> set[UUID]:
    """Return ids of memories whose text has changed since the decision about them."""
    retrieved = read(batch, Retrieved)
    shown = {neighbour.memory_id: neighbour.text for neighbour in retrieved.neighbours}
    known = dict(zip(retrieved.known, read(batch, Extracted).facts, strict=True))
    targets = {write.target for write in writes}

    def same(memory: Memory) -> bool:
        if memory.id in shown:
            return memory.text == shown[memory.id]
        # Not shown to the model, but known to have the text of a fact.
        return memory.id in known and text_hash(memory.text) == text_hash(known[memory.id].text)

    return {memory.id for memory in stored if memory.id in targets and not same(memory)}


async def _writes(batch: Batch, embedder: Embedder) -> list[Write]:
    """Build the writes of all decisions, with the vectors of their texts."""
    facts = read(batch, Extracted).facts
    retrieved = read(batch, Retrieved)
    consolidated = read_if_any(batch, Consolidated)
    decisions = consolidated.decisions if consolidated else tuple(settled(batch).values())
    reworded = await _reworded(facts, decisions, embedder)
    near = {neighbour.memory_id: neighbour.similarity for neighbour in retrieved.neighbours}
    mode = mode_of(batch)
    appended = mode is not None and mode.mode is Mode.APPEND
    writes = []
    for decision in decisions:
        embedded = unpack(retrieved.vectors[decision.fact])
        vector = reworded.get(decision.text or "", embedded)
        write = _write(batch, facts[decision.fact], decision, embedded, vector)
        similarity = near.get(decision.memory_id, 0.0) if decision.memory_id else 0.0
        writes.append(replace(write, similarity=similarity, appended=appended))
    return writes


async def _reworded(
    facts: Sequence[Fact], decisions: Sequence[Decision], embedder: Embedder
) -> Mapping[str, Vector]:
    """Embed texts that the model reworded; retrieve has embedded all others."""
    reworded = (d.text for d in decisions if d.text and d.text != facts[d.fact].text)
    texts = list(dict.fromkeys(reworded))
    vectors = await embedder.embed(texts) if texts else []
    return dict(zip(texts, vectors, strict=True))


def _write(batch: Batch, fact: Fact, decision: Decision, embedded: Vector, vector: Vector) -> Write:
    """Build the write of one decision."""
    event = batch.events[fact.source.event]
    return Write(
        position=decision.fact,
        fact=fact,
        outcome=decision.outcome,
        text=decision.text or fact.text,
        reason=decision.reason,
        target=decision.memory_id,
        # The same on every retry, another one on a replay.
        new_id=uuid5(event.id, f"memory:{event.seq}:{decision.fact}"),
        vector=vector,
        fact_vector=embedded,
        event=event,
        said_at=batch.said_at(fact.source),
    )
