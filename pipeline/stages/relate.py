"""relate: what changed -> entities and relations. The third question to the model.

The memories are stored by now, so a graph that fails for good does not fail the event: it is told
in `graph_status`, and can be related again alone.
"""

from __future__ import annotations

from pipeline.domain import Activation, Batch, GraphChanges
from pipeline.errors import PermanentError
from pipeline.ledger.graph import Graph
from pipeline.outputs import Applied, Extracted, Related, dump, read, read_if_any
from pipeline.ports import MemoryModel
from pipeline.stages import Finished


async def relate(
    activation: Activation, batch: Batch, *, model: MemoryModel, graph: Graph
) -> Finished:
    if (related := read_if_any(batch, Related)) is not None:
        return Finished(dump(related))
    facts = read(batch, Extracted).facts
    changed = [facts[i] for i in read(batch, Applied).changed]
    texts = [fact.text for fact in changed]
    current = await graph.mentioned_in(batch.scope, texts)
    try:
        answer = await model.relate(texts, current)
    except PermanentError as error:
        return Finished(dump(Related("FAILED", GraphChanges(), f"{error.code}: {error}")))
    related = Related("SUCCEEDED", answer.value)
    await graph.apply(activation, batch, changed, related, answer.usage)
    return Finished(dump(related), answer.usage)
