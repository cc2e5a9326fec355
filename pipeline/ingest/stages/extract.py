"""extract: messages -> facts. The first model call, or verbatim if `infer` is false."""

from __future__ import annotations

from dataclasses import replace

from pipeline.domain.events import StageName
from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Role
from pipeline.domain.stage_outputs import Extracted, dump
from pipeline.ingest.stages import Finished
from pipeline.ports import ExtractionRequest, MemoryModel

NOTHING_SAID = "No message to store: only system messages or empty text."
NOTHING_FOUND = (
    "The messages hold nothing worth remembering: questions, small talk or known context."
)


async def extract(batch: Batch, *, model: MemoryModel) -> Finished:
    """Extract facts from the batch's messages; without `infer`, each message is a fact."""
    if not batch.options.infer:
        return _finished(verbatim(batch), NOTHING_SAID)
    answer = await model.extract(
        ExtractionRequest(batch.messages, batch.context, batch.options.instructions)
    )
    return replace(_finished(answer.value, answer.note or NOTHING_FOUND), usage=answer.usage)


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
