"""profile: the memories of a user -> values of a profile's fields, each with its memories.

Two steps of an event of kind PROFILE. The first asks the model and saves its answer; the second
stores the fields. The event waits in its lane like an add, and adds no memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pipeline.domain.events import StageName
from pipeline.domain.filters import parse
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Applied, Extracted, dump, read
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.answer import MOST
from pipeline.lanes.effects import AnswerEffects, ProfileEffects
from pipeline.memories.store import Memories
from pipeline.ports import MemoryModel
from pipeline.profiles.store import Profiles

NO_MEMORIES = "The user has no memories: nothing to fill a profile from."


async def generate(
    batch: Batch, *, model: MemoryModel, memories: Memories, profiles: Profiles
) -> Finished:
    """Ask for the fields of the user's profile, from the newest memories of all scopes."""
    question, user_id = batch.options.question, batch.scope.user_id
    assert question is not None  # see steps.step_of
    assert user_id is not None  # see pipeline.ingest.profiles
    project_id = batch.scope.project_id
    changes = await profiles.changes(project_id, user_id)
    newest, count = await memories.page(
        project_id, parse({"user_id": user_id}), expired=False, limit=MOST, offset=0
    )
    answer: dict[str, Any] = {"changes": changes, "fields": []}
    if not newest:
        return _generated(answer, NO_MEMORIES, ())
    oldest_first = list(reversed(newest))
    distilled = await model.distil(question, [memory.text for memory in oldest_first])
    ids = [memory.id for memory in oldest_first]
    answer["fields"] = supported(distilled.value, ids)
    note = _note(distilled.value, answer["fields"], len(newest), count)
    if distilled.note:
        note = f"{note} {distilled.note}"
    return replace(_generated(answer, note, ids), usage=distilled.usage)


def supported(values: Mapping[str, Any], ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """The fields with a value and at least one memory that states it.

    `values`: by name, a value and the numbers of its memories, which begin with 1. A value without
    a memory is a guess of the model: it is left out.
    """
    fields = []
    for name, row in sorted(values.items()):
        numbers = {number for number in row["memories"] if 0 < number <= len(ids)}
        if numbers and not is_empty(row["value"]):
            sources = sorted(str(ids[number - 1]) for number in numbers)
            fields.append({"name": name, "value": row["value"], "memory_ids": sources})
    return fields


def is_empty(value: Any) -> bool:
    """True for null, a blank text, and a list or object with only such parts."""
    match value:
        case None:
            return True
        case str():
            return not value.strip()
        case list():
            return all(is_empty(part) for part in value)
        case dict():
            return all(is_empty(part) for part in value.values())
        case _:
            return False


async def store(batch: Batch) -> Finished:
    """Store the fields that the first step saved."""
    answer = read(batch, Extracted).answer
    assert answer is not None  # see generate
    effects = ProfileEffects(batch.events[-1].id, answer["changes"], answer["fields"])
    return Finished(dump(Applied(())), next_stage=None, effects=effects)


def _generated(answer: dict[str, Any], note: str, sources: Sequence[UUID]) -> Finished:
    output = dump(Extracted((), note, answer))
    return Finished(output, StageName.APPLY, effects=AnswerEffects(sources))


def _note(names: Mapping[str, Any], fields: Sequence[Mapping[str, Any]], read: int, of: int) -> str:
    """The note of the event: the filled and the empty fields, by name."""
    which = "the newest " if read < of else ""
    filled = [field["name"] for field in fields]
    empty = sorted(set(names) - set(filled))
    made = f"Filled {', '.join(filled)}" if filled else "Filled no field"
    without = f" No memory states: {', '.join(empty)}." if empty else ""
    return f"{made} from {which}{read} of {of} memories.{without}"
