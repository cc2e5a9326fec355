"""answer: a question about the memories -> an object of the requested shape.

It waits in its lane like an add, so that it sees all earlier messages there; it adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.filters import parse, require_scope
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Extracted, dump
from pipeline.ingest.stages import Finished
from pipeline.lanes.effects import AnswerEffects
from pipeline.memories.store import Memories
from pipeline.ports import MemoryModel
from pipeline.versions.as_of import MemoriesAsOf

# Maximum number of memories passed to one model call.
MOST = 500


async def answer(
    batch: Batch, *, model: MemoryModel, memories: Memories, versions: MemoriesAsOf
) -> Finished:
    """Answer the batch's export or summary from the newest memories that match its filters."""
    question = batch.options.question
    assert question is not None  # see steps.step_of
    tree = require_scope(parse(question.filters))
    project_id = batch.scope.project_id
    if question.snapshot is None:
        newest, count = await memories.page(project_id, tree, expired=False, limit=MOST, offset=0)
    else:
        newest, count = await versions.page(
            project_id, tree, snapshot=question.snapshot, expired=False, limit=MOST, offset=0
        )
    distilled = await model.distil(question, [memory.text for memory in reversed(newest)])
    open_ids = sorted({str(memory.conflict_id) for memory in newest if memory.conflict_id})
    extracted = Extracted((), _note(len(newest), count, open_ids), dict(distilled.value))
    sources = AnswerEffects([memory.id for memory in newest])
    return Finished(dump(extracted), next_stage=None, usage=distilled.usage, effects=sources)


def _note(read: int, count: int, conflict_ids: Sequence[str]) -> str:
    """The note of the event: the memories read, and the open conflicts between them."""
    which = "the newest " if read < count else ""
    conflicts = f" Open conflicts: {', '.join(conflict_ids)}." if conflict_ids else ""
    return f"Answered from {which}{read} of {count} memories.{conflicts}"
