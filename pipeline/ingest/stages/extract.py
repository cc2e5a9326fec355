"""extract: messages -> facts. The first model call, or verbatim if `infer` is false.

Memories that a message recalls are cut out first, because they are not its statements. A turn
that repeats an earlier one has the facts of that one, without a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.errors import paid
from pipeline.domain.events import StageName
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Message, Role
from pipeline.domain.modes import ChosenMode, Mode
from pipeline.domain.stage_outputs import Extracted, dump
from pipeline.domain.usage import Usage
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.cardinality import with_cardinality
from pipeline.ingest.stages.repeated import repeated_facts
from pipeline.memories.store import Memories
from pipeline.ports import ExtractionRequest, MemoryModel
from pipeline.text.recalled import without_recalled

NOTHING_TO_STORE = "No message to store: only system messages or empty text."
KEPT_AS_TURNS = "The messages are kept and searchable as turns; no model was called (mode turns)."
NOTHING_FOUND = (
    "The messages hold nothing worth remembering: questions, small talk or known context."
)


async def extract(
    batch: Batch, *, model: MemoryModel, memories: Memories, mode: ChosenMode | None
) -> Finished:
    """Extract facts from the batch's messages. Without a mode, each message is a fact."""
    if mode is None:
        return _finished(verbatim(batch), NOTHING_TO_STORE, None)
    if mode.mode is Mode.TURNS:
        return _finished((), KEPT_AS_TURNS, mode)
    if batch.options.procedural:
        return await _procedures(batch, model, mode)
    # A recorded answer is that of the whole batch.
    repeats = {} if batch.override.recorded else await repeated_facts(batch, memories)
    known = [fact for facts in repeats.values() for fact in facts]
    if len(repeats) == len(batch.events):
        return _finished(_in_order(batch, known), NOTHING_FOUND, mode)
    answer = await model.extract(
        ExtractionRequest(
            [
                replace(sourced, message=_own(sourced.message))
                for sourced in batch.messages
                if sourced.source.event not in repeats
            ],
            [_own(message) for message in batch.context],
            batch.options.instructions,
            summary=batch.summary,
        )
    )
    facts = await with_cardinality(batch, [*known, *answer.value], memories)
    note = answer.note or NOTHING_FOUND
    finished = _finished(_in_order(batch, facts), note, mode, left_out=answer.left_out)
    return replace(finished, usage=answer.usage)


def _in_order(batch: Batch, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts in the order in which they were said; those of one time in the order of arrival.

    The later stages decide in this order, so that the last statement of a batch is the one that
    stands. Recorded answers stay in their order: later answers refer to it.
    """
    if batch.override.recorded:
        return tuple(facts)
    return tuple(sorted(facts, key=lambda f: (batch.said_at(f.source), f.source.event)))


def _own(message: Message) -> Message:
    """The message without recalled memories."""
    return replace(message, content=without_recalled(message.content))


async def _procedures(batch: Batch, model: MemoryModel, mode: ChosenMode) -> Finished:
    """Sum up each event's messages in one fact, with one call for each event."""
    facts: list[Fact] = []
    usage = Usage()
    for position, event in enumerate(batch.events):
        request = ExtractionRequest(
            event.messages, instructions=batch.options.instructions, procedural=True
        )
        with paid(usage):
            answer = await model.extract(request)
        # Recorded answers are those of the whole batch.
        facts += [fact for fact in answer.value if fact.source.event == position]
        usage += answer.usage
    return replace(_finished(tuple(facts), NOTHING_TO_STORE, mode), usage=usage)


def verbatim(batch: Batch) -> tuple[Fact, ...]:
    """Return every message as a fact, except system messages and empty ones."""
    return tuple(
        Fact(sourced.message.content.strip(), sourced.source, sourced.message.role)
        for sourced in batch.messages
        if sourced.message.role is not Role.SYSTEM and sourced.message.content.strip()
    )


def _finished(
    facts: tuple[Fact, ...],
    why_none: str,
    mode: ChosenMode | None,
    *,
    left_out: tuple[int, ...] = (),
) -> Finished:
    """Build the result.

    `why_none` is saved even with facts: some events of the batch may have none.
    """
    extracted = Extracted(facts, why_none, mode=mode, left_out=left_out)
    return Finished(dump(extracted), StageName.RETRIEVE if facts else None)
