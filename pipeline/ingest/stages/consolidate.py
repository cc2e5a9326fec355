"""consolidate: facts and neighbours -> decisions about each fact. The second model call.

Facts with a settled decision are not sent; if all are settled, the stage is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision
from pipeline.domain.lanes import Batch
from pipeline.domain.modes import ChosenMode
from pipeline.domain.stage_outputs import Consolidated, Extracted, Retrieved, dump, read
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.appended import decide_appended
from pipeline.ingest.stages.settled import settled
from pipeline.ports import MemoryModel


async def consolidate(batch: Batch, *, model: MemoryModel, mode: ChosenMode | None) -> Finished:
    """Decide about every fact; the model gets only those that are not settled.

    With a `mode`, which is APPEND, the others are added or end a memory, without a call.
    """
    facts = read(batch, Extracted).facts
    decided = list(settled(batch).values())
    left = sorted(set(range(len(facts))) - {decision.fact for decision in decided})
    if not left:
        return _finished(decided)
    neighbours = read(batch, Retrieved).neighbours
    if mode is not None:
        decided += [decide_appended(i, facts[i], neighbours) for i in left]
        return _finished(decided, mode)
    dated = [replace(facts[i], said_at=batch.said_at(facts[i].source)) for i in left]
    answer = await model.decide(dated, neighbours, batch.options.instructions)
    # The model's numbers count only the facts it was sent.
    decided += [replace(decision, fact=left[decision.fact]) for decision in answer.value]
    return replace(_finished(decided), usage=answer.usage)


def _finished(decisions: Sequence[Decision], mode: ChosenMode | None = None) -> Finished:
    in_order = tuple(sorted(decisions, key=lambda decision: decision.fact))
    return Finished(dump(Consolidated(in_order, mode)), StageName.APPLY)
