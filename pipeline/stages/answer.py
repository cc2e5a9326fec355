"""answer: a question about the memories -> an object of the shape asked for.

It stands in its lane like an add, so that it knows all that was said there before; it adds nothing.
"""

from __future__ import annotations

from pipeline.domain import Batch, Question
from pipeline.filters import parse, require_scope
from pipeline.ledger.filtering import matches, unexpired
from pipeline.ledger.memories import Memories
from pipeline.outputs import Extracted, dump
from pipeline.ports import MemoryModel
from pipeline.stages import Finished

# What one call can read: the newest so many.
MOST = 500


async def answer(
    batch: Batch, question: Question, *, model: MemoryModel, memories: Memories
) -> Finished:
    where = matches(batch.scope.project_id, require_scope(parse(question.filters)))
    found, count = await memories.page(where & unexpired(), limit=MOST, offset=0)
    distilled = await model.distil(question, [memory.text for memory in reversed(found)])
    extracted = Extracted((), _note(len(found), count), dict(distilled.value))
    return Finished(dump(extracted), next_stage=None, usage=distilled.usage)


def _note(read: int, count: int) -> str:
    return f"Answered from {'the newest ' if read < count else ''}{read} of {count} memories."
