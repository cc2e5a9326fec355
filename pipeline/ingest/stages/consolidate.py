"""consolidate: facts and neighbours -> one decision per fact. The second model call.

Facts with a settled decision are not sent; if all are settled, the stage is skipped.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision, Outcome
from pipeline.domain.lanes import Batch
from pipeline.domain.modes import ChosenMode
from pipeline.domain.stage_outputs import Consolidated, Extracted, Retrieved, dump, read
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.settled import APPENDED, settled
from pipeline.ports import MemoryModel


async def consolidate(batch: Batch, *, model: MemoryModel, mode: ChosenMode | None) -> Finished:
    """Decide about every fact; the model gets only those that are not settled.

    With a `mode`, which is APPEND, the others are added without a call.
    """
    facts = read(batch, Extracted).facts
    decided = settled(batch)
    left = [i for i in range(len(facts)) if i not in decided]
    if not left:
        return _finished(decided)
    if mode is not None:
        added = {i: Decision(i, Outcome.ADD, APPENDED, facts[i].text) for i in left}
        return _finished(decided | added, mode)
    neighbours = read(batch, Retrieved).neighbours
    answer = await model.decide([facts[i] for i in left], neighbours, batch.options.instructions)
    # The model's numbers count only the facts it was sent.
    answered = [replace(decision, fact=left[decision.fact]) for decision in answer.value]
    by_fact = decided | {decision.fact: decision for decision in answered}
    return replace(_finished(by_fact), usage=answer.usage)


def _finished(decisions: dict[int, Decision], mode: ChosenMode | None = None) -> Finished:
    in_order = tuple(decisions[i] for i in sorted(decisions))
    return Finished(dump(Consolidated(in_order, mode)), StageName.APPLY)
