"""relate: what changed -> entities and relations. The third question to the model.

The memories are stored by now, so a graph that fails for good does not fail the event: it is told
in `graph_status`, and can be related again alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.domain import Batch, GraphChanges, StoredRelation
from pipeline.errors import PermanentError
from pipeline.ledger.effects import GraphEffects, name_key
from pipeline.ledger.graph import Graph
from pipeline.outputs import Applied, Extracted, Related, dump, read
from pipeline.ports import MemoryModel
from pipeline.stages import Finished


async def relate(batch: Batch, *, model: MemoryModel, graph: Graph) -> Finished:
    facts = read(batch, Extracted).facts
    changed = [facts[i] for i in read(batch, Applied).changed]
    texts = [fact.text for fact in changed]
    current = await graph.mentioned_in(batch.scope, texts)
    try:
        answer = await model.relate(texts, current)
    except PermanentError as error:
        failed = Related("FAILED", GraphChanges(), f"{error.code}: {error}")
        return Finished(dump(failed), None, error.usage)
    changes = _without_repeats(answer.value, current)
    return Finished(
        dump(Related("SUCCEEDED", changes)),
        None,
        answer.usage,
        GraphEffects(batch, changed, changes),
    )


def _without_repeats(changes: GraphChanges, current: Sequence[StoredRelation]) -> GraphChanges:
    """A relation that is ended and stated in one breath goes on."""
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
