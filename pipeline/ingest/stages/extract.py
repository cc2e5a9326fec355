"""extract: messages -> facts. The first model call, or verbatim if `infer` is false.

Memories that a message recalls are cut out first: they are no statements of the message.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.domain.errors import paid
from pipeline.domain.events import StageName
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Message, Role
from pipeline.domain.stage_outputs import Extracted, dump
from pipeline.domain.usage import Usage
from pipeline.ingest.stages import Finished
from pipeline.ports import ExtractionRequest, MemoryModel
from pipeline.text.recalled import without_recalled

NOTHING_SAID = "No message to store: only system messages or empty text."
NOTHING_FOUND = (
    "The messages hold nothing worth remembering: questions, small talk or known context."
)


async def extract(batch: Batch, *, model: MemoryModel) -> Finished:
    """Extract facts from the batch's messages; without `infer`, each message is a fact."""
    if batch.options.procedural:
        return await _procedures(batch, model)
    if not batch.options.infer:
        return _finished(verbatim(batch), NOTHING_SAID)
    answer = await model.extract(
        ExtractionRequest(
            [replace(sourced, message=_own(sourced.message)) for sourced in batch.messages],
            [_own(message) for message in batch.context],
            batch.options.instructions,
        )
    )
    return replace(_finished(answer.value, answer.note or NOTHING_FOUND), usage=answer.usage)


def _own(message: Message) -> Message:
    """The message without recalled memories."""
    return replace(message, content=without_recalled(message.content))


async def _procedures(batch: Batch, model: MemoryModel) -> Finished:
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
    return replace(_finished(tuple(facts), NOTHING_SAID), usage=usage)


def verbatim(batch: Batch) -> tuple[Fact, ...]:
    """Return every message as a fact, except system messages and empty ones."""
    return tuple(
        Fact(sourced.message.content.strip(), sourced.source, sourced.message.role)
        for sourced in batch.messages
        if sourced.message.role is not Role.SYSTEM and sourced.message.content.strip()
    )


def _finished(facts: tuple[Fact, ...], why_none: str) -> Finished:
    """Build the result.

    `why_none` is saved even with facts: some events of the batch may have none.
    """
    return Finished(dump(Extracted(facts, why_none)), StageName.RETRIEVE if facts else None)
