"""consolidate: facts and neighbours -> one decision a fact. The second question to the model.

A fact whose exact text is stored, or was said before in the same batch, needs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from pipeline.domain import Batch, Decision, Fact, Outcome
from pipeline.ledger.changes import text_hash
from pipeline.outputs import Consolidated, Extracted, Retrieved, dump, read
from pipeline.ports import MemoryModel
from pipeline.stages import Finished

VERBATIM = "Stored as said (infer=false)."
ALREADY_STORED = "Exactly this is already stored."
SAID_TWICE = "Exactly this was said earlier in the same batch."


async def consolidate(batch: Batch, *, model: MemoryModel) -> Finished:
    facts = read(batch, Extracted).facts
    retrieved = read(batch, Retrieved)
    settled = repeats(facts, retrieved.known)
    open_facts = [i for i in range(len(facts)) if i not in settled]
    if not batch.options.infer:
        added = {i: Decision(i, Outcome.ADD, VERBATIM, text=facts[i].text) for i in open_facts}
        return _finished(settled | added)
    if not open_facts:
        return _finished(settled)
    answer = await model.decide(
        [facts[i] for i in open_facts], retrieved.neighbours, batch.options.instructions
    )
    decided = {
        open_facts[decision.fact]: replace(decision, fact=open_facts[decision.fact])
        for decision in answer.value
    }
    return replace(_finished(settled | decided), usage=answer.usage)


def repeats(facts: Sequence[Fact], known: Sequence[UUID | None]) -> dict[int, Decision]:
    """NOOPs for facts whose exact text is stored or comes earlier in this batch, by position.

    What an earlier one comes to is known only once it is applied: its NOOP names no memory yet.
    """
    first: dict[bytes, int] = {}
    found: dict[int, Decision] = {}
    for position, fact in enumerate(facts):
        earlier = first.setdefault(text_hash(fact.text), position)
        stored = known[position]
        if stored is not None:
            found[position] = Decision(position, Outcome.NOOP, ALREADY_STORED, memory_id=stored)
        elif earlier != position:
            found[position] = Decision(position, Outcome.NOOP, SAID_TWICE)
    return found


def new_memory_id(batch: Batch, fact: Fact, position: int) -> UUID:
    """The id a fact's memory gets if it is added: the same on every retry, another on a replay."""
    event = batch.events[fact.source.event]
    return uuid5(event.id, f"memory:{event.seq}:{position}")


def _finished(decisions: dict[int, Decision]) -> Finished:
    return Finished(dump(Consolidated(tuple(decisions[i] for i in sorted(decisions)))))
