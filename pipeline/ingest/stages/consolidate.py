"""consolidate: facts and neighbours -> one decision a fact. The second question to the model.

Much needs no model: verbatim adds, a text that is stored or was said before in the same batch, a
fact that has nothing to be compared with. Where nothing is left to ask the stage is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision, Fact, Outcome
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Consolidated, Extracted, Retrieved, dump, read
from pipeline.ingest.stages import Finished
from pipeline.ports import MemoryModel
from pipeline.text.equality import text_hash

VERBATIM = "Stored as said (infer=false)."
ALREADY_STORED = "Exactly this is already stored."
SAID_TWICE = "Exactly this was said earlier in the same batch."
NOTHING_SIMILAR = "Nothing similar is stored."


async def consolidate(batch: Batch, *, model: MemoryModel) -> Finished:
    facts = read(batch, Extracted).facts
    retrieved = read(batch, Retrieved)
    decided = foregone(batch, facts, retrieved)
    left = [i for i in range(len(facts)) if i not in decided]
    if not left:
        return _finished(decided)
    answer = await model.decide(
        [facts[i] for i in left], retrieved.neighbours, batch.options.instructions
    )
    asked = {
        left[decision.fact]: replace(decision, fact=left[decision.fact])
        for decision in answer.value
    }
    return replace(_finished(decided | asked), usage=answer.usage)


def foregone(batch: Batch, facts: Sequence[Fact], retrieved: Retrieved) -> dict[int, Decision]:
    """The decisions that need no model, by the fact's position: the same on every retry."""
    decided = repeats(facts, retrieved.known)
    left = [i for i in range(len(facts)) if i not in decided]
    if not batch.options.infer:
        return decided | {i: Decision(i, Outcome.ADD, VERBATIM, facts[i].text) for i in left}
    if len(left) == 1 and not retrieved.neighbours:
        [i] = left
        return decided | {i: Decision(i, Outcome.ADD, NOTHING_SIMILAR, facts[i].text)}
    return decided


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


def in_order(decisions: dict[int, Decision]) -> tuple[Decision, ...]:
    return tuple(decisions[i] for i in sorted(decisions))


def _finished(decisions: dict[int, Decision]) -> Finished:
    return Finished(dump(Consolidated(in_order(decisions))), StageName.APPLY)
