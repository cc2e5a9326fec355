"""relate: changed facts -> entities and relations. The third model call.

The memories are already stored, so a permanent failure of the graph does not fail the event:
`graph_status` reports it, and the graph alone can be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from pipeline.domain.errors import PermanentError
from pipeline.domain.facts import Fact
from pipeline.domain.graph import GraphChanges, StoredRelation, name_key
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Applied, Extracted, Related, dump, read
from pipeline.graph.store import Graph
from pipeline.ingest.stages import Finished
from pipeline.lanes.effects import GraphEffects
from pipeline.memories.store import Memories
from pipeline.ports import MemoryModel

# Maximum characters of a name. Longer texts are no names; an index entry has at most 2,700 bytes.
LONGEST_NAME = 300


async def relate(batch: Batch, *, model: MemoryModel, graph: Graph, memories: Memories) -> Finished:
    """Extract the relations of the changed facts.

    If the model fails with a PermanentError, only the graph fails.
    """
    changed, of = await _standing(batch, memories) if batch.replayed else _changed(batch)
    if not changed:
        return Finished(dump(Related("SUCCEEDED", GraphChanges())), None)
    texts = [fact.text for fact in changed]
    until = max(message.said_at for message in batch.messages) if batch.replayed else None
    current = await graph.mentioned_in(batch.scope, texts, until=until)
    try:
        answer = await model.relate(texts, current)
    except PermanentError as error:
        failed = Related("FAILED", GraphChanges(), f"{error.code}: {error}")
        return Finished(dump(failed), None, error.usage)
    changes = _without_repeats(_of_names(answer.value), current)
    return Finished(
        dump(Related("SUCCEEDED", changes)),
        None,
        answer.usage,
        GraphEffects(batch, changed, of, changes),
    )


def _changed(batch: Batch) -> tuple[list[Fact], Sequence[UUID]]:
    """Return the facts that changed memories, and the id of each memory."""
    facts, applied = read(batch, Extracted).facts, read(batch, Applied)
    return [facts[place] for place in applied.changed], applied.memories


async def _standing(batch: Batch, memories: Memories) -> tuple[list[Fact], Sequence[UUID]]:
    """Like `_changed`, without the facts whose memory has been changed since.

    A later event, a person or an undo may have changed it: a late graph must not restore old facts.
    """
    changed, of = _changed(batch)
    left = await memories.last_changed_by(batch.scope, of, [event.id for event in batch.events])
    pairs = [pair for pair in zip(changed, of, strict=False) if pair[1] in left]
    return [fact for fact, _ in pairs], [memory_id for _, memory_id in pairs]


def _of_names(changes: GraphChanges) -> GraphChanges:
    """Drop relations with a name or a word that is longer than any name."""
    short = tuple(
        relation
        for relation in changes.relations
        if max(map(len, (relation.source.name, relation.relation, relation.destination.name)))
        <= LONGEST_NAME
    )
    return replace(changes, relations=short)


def _without_repeats(changes: GraphChanges, current: Sequence[StoredRelation]) -> GraphChanges:
    """Keep relations that the same answer both ends and states."""
    stated = {
        (name_key(new.source.name), new.relation, name_key(new.destination.name))
        for new in changes.relations
    }
    going_on = {
        old.relation_id
        for old in current
        if (name_key(old.source), old.relation, name_key(old.destination)) in stated
    }
    return replace(changes, ended=tuple(key for key in changes.ended if key not in going_on))
