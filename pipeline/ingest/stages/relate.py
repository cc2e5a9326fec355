"""relate: changed facts -> entities and relations. The third model call.

The memories are already stored, so a permanent failure of the graph does not fail the event:
`graph_status` reports it, and the graph alone can be replayed. Invalid rows of a repaired answer
are left out, and the graph is PARTIAL. The model names entities and
relations; which nodes these are, and which relations they end, is computed: see
pipeline/domain/graph/plan and entity_resolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import PermanentError
from pipeline.domain.events import FailureCode
from pipeline.domain.facts import Fact
from pipeline.domain.graph.entity_resolution import SIMILAR, USER, NodeSet, may_be_same
from pipeline.domain.graph.plan import plan_changes
from pipeline.domain.graph.values import (
    Entity,
    FactMemory,
    GraphChanges,
    GraphPlan,
    GraphStatus,
    Node,
    Relation,
    RelationRequest,
)
from pipeline.domain.graph.working_graph import FactSource
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Applied, Extracted, Related, dump, read
from pipeline.domain.usage import Answer
from pipeline.graph.store import Graph
from pipeline.ingest.stages import Finished
from pipeline.lanes.effects import GraphEffects
from pipeline.memories.store import Memories
from pipeline.ports import Embedder, MemoryModel
from pipeline.text.names import is_self, plain_name
from pipeline.text.relations.ends import ENDABLE, FORMS
from pipeline.text.relations.entity_types import entity_type
from pipeline.text.relations.names import canonical

log = structlog.get_logger()

# Maximum characters of a name. Longer texts are no names; an index entry has at most 2,700 bytes.
LONGEST_NAME = 300
# Maximum number of faults that the detail of a PARTIAL graph names.
MOST_FAULTS = 5
# Pairs of relations, and of statements and forms, that are planned on the event loop, in a few
# milliseconds.
INLINE_PAIRS = 2_000


async def relate(
    batch: Batch, *, model: MemoryModel, embedder: Embedder, graph: Graph, memories: Memories
) -> Finished:
    """Extract the relations of the changed facts.

    If the model fails with a PermanentError, only the graph fails.
    """
    changed = await _standing(batch, memories) if batch.replayed else _changed(batch)
    if not changed:
        return Finished(dump(Related(GraphStatus.SUCCEEDED, GraphChanges())), None)
    # The model is not asked about what a memory states already.
    changed.sort(key=lambda pair: pair[1].repeats)
    facts = [fact for fact, _ in changed]
    to_relate = [fact for fact, memory in changed if not memory.repeats]
    until = max(message.said_at for message in batch.messages) if batch.replayed else None
    request = RelationRequest(
        to_relate,
        await graph.mentioned_in(batch.scope, [fact.text for fact in to_relate], until=until),
        batch.graph_types,
        await graph.vocabulary(batch.payer or batch.scope.project_id),
    )
    try:
        answer = await model.relate(request) if to_relate else Answer(GraphChanges())
    except PermanentError as error:
        failed = Related(GraphStatus.FAILED, GraphChanges(), f"{error.code}: {error}")
        return Finished(dump(failed), None, error.usage)
    changes = _of_names(answer.value)
    of_facts = [memory for _, memory in changed]
    again = await _said_again(batch, of_facts, graph)
    plan = await _plan(
        batch,
        replace(request, facts=facts),
        replace(changes, relations=(*changes.relations, *again)),
        of_facts,
        graph,
        embedder,
    )
    of = [memory.memory_id for memory in of_facts if memory.memory_id]
    return Finished(
        dump(_related(changes)), None, answer.usage, GraphEffects(batch, facts, of, plan)
    )


async def _said_again(batch: Batch, of_facts: Sequence[FactMemory], graph: Graph) -> list[Relation]:
    """The relations of the memories that facts repeat, as stated by these facts."""
    repeats = {memory.memory_id: fact for fact, memory in enumerate(of_facts) if memory.repeats}
    ids = [memory_id for memory_id in repeats if memory_id]
    stated = await graph.stated_by(batch.scope, ids) if ids else []
    return [
        Relation(
            Entity(row.source, row.source_kind),
            row.relation,
            Entity(row.destination, row.destination_kind),
            repeats[row.memory_id],
        )
        for row in stated
    ]


async def _plan(
    batch: Batch,
    request: RelationRequest,
    changes: GraphChanges,
    memories: Sequence[FactMemory],
    graph: Graph,
    embedder: Embedder,
) -> GraphPlan:
    """Compute the changes of the stored graph from the relations that the facts state."""
    scope, types = batch.scope, request.types
    kinds = _kinds(changes, types.entities)
    sources = [_source(batch, fact) for fact in request.facts]
    speakers = [plain_name(fact.speaker) for fact in request.facts if fact.speaker]
    subjects = [plain_name(fact.subject) for fact in request.facts if fact.subject]
    wanted = [*kinds, plain_name(USER), *speakers, *subjects]
    nodes = await graph.known(scope, list(dict.fromkeys(wanted)))
    missing = kinds.keys() - {node.plain for node in nodes}
    similar = await _similar(batch, {name: kinds[name] for name in missing}, graph, embedder)
    # An edge that the model ends may lie between other nodes.
    ended = {ending.relation_id for ending in changes.endings}.union(changes.ended)
    shown = [edge for edge in request.current if edge.relation_id in ended]
    of_ended = [plain_name(end) for edge in shown for end in (edge.source, edge.destination)]
    nodes += await graph.known(scope, of_ended, [node.root_id for node in similar.values()])
    roots = dict.fromkeys(node.root_id for node in nodes)
    pairs = zip(request.facts, sources, strict=True)
    since = min(fact.valid_from or source.said_at for fact, source in pairs)
    retired = [memory_id for memory in memories for memory_id in memory.retired]
    current, merged = await graph.current(scope, list(roots), retired, since=since)
    later = await graph.said_later(
        scope,
        [
            (relation.source.name, relation.destination.name)
            for relation in changes.relations
            if canonical(relation.relation, types.relations).name in ENDABLE
        ],
        since=min(source.said_at for source in sources),
    )

    def planned() -> GraphPlan:
        return plan_changes(
            changes,
            request.facts,
            sources,
            memories,
            nodes=NodeSet(scope, nodes, types.entities, similar, merged),
            current=current,
            types=types,
            later=later,
        )

    compared = len(changes.relations) * (len(changes.relations) + len(current))
    compared += len(later) * len(FORMS)
    return await beside_loop(planned, inline=compared <= INLINE_PAIRS)


def _kinds(changes: GraphChanges, own: Mapping[str, str]) -> dict[str, str]:
    """The type of each entity of the answer, by plain name."""
    ends = (end for edge in changes.relations for end in (edge.source, edge.destination))
    return {
        plain_name(end.name): entity_type(end.kind, own) for end in ends if not is_self(end.name)
    }


async def _similar(
    batch: Batch, new: Mapping[str, str], graph: Graph, embedder: Embedder
) -> dict[str, Node]:
    """For new names, the stored node with a similar name that is no look-alike.

    Names are embedded only if there is a candidate, so most batches embed none.
    """
    words = {word for name in new for word in name.split()}
    stored = await graph.similar(batch.scope, sorted(words)) if words else []
    pairs = [
        (name, node)
        for name, kind in new.items()
        for node in stored
        if may_be_same(name, node, kind)
    ]
    if not pairs:
        return {}
    texts = list(dict.fromkeys(text for name, node in pairs for text in (name, node.plain)))
    vectors = dict(zip(texts, await embedder.embed(texts), strict=True))
    near = [(float(vectors[name] @ vectors[node.plain]), name, node) for name, node in pairs]
    near.sort(key=lambda pair: pair[0])
    return {name: node for cosine, name, node in near if cosine >= SIMILAR}


def _source(batch: Batch, fact: Fact) -> FactSource:
    """The event and the time of a fact."""
    event = batch.events[fact.source.event]
    return FactSource(event.id, event.seq, batch.said_at(fact.source))


def _changed(batch: Batch) -> list[tuple[Fact, FactMemory]]:
    """Return the facts to relate, each with its memory."""
    facts, applied = read(batch, Extracted).facts, read(batch, Applied)
    outcomes = list(applied.outcomes)
    if not outcomes:  # saved by an earlier release
        outcomes = [FactMemory(memory_id) for memory_id in applied.memories or [None] * len(facts)]
    return [
        (facts[place], memory) for place, memory in zip(applied.changed, outcomes, strict=False)
    ]


async def _standing(batch: Batch, memories: Memories) -> list[tuple[Fact, FactMemory]]:
    """Like `_changed`, without the facts whose memory has been changed since.

    A later event, a person or an undo may have changed it: a late graph must not restore old facts.
    """
    changed = _changed(batch)
    of = [memory.memory_id for _, memory in changed if memory.memory_id]
    left = await memories.last_changed_by(batch.scope, of, [event.id for event in batch.events])
    return [pair for pair in changed if pair[1].memory_id in left]


def _related(changes: GraphChanges) -> Related:
    """The output of the stage; the graph is PARTIAL if something is left out."""
    count = len(changes.left_out)
    if not count:
        return Related(GraphStatus.SUCCEEDED, changes)
    log.warning("graph_partial", left_out=count)
    named = "; ".join(changes.left_out[:MOST_FAULTS]) + ("; …" if count > MOST_FAULTS else "")
    detail = f"{FailureCode.LLM_BAD_OUTPUT}: {count} left out as invalid: {named}"
    return Related(GraphStatus.PARTIAL, changes, detail)


def _of_names(changes: GraphChanges) -> GraphChanges:
    """Leave out relations with a name or a word that is longer than any name."""
    short = tuple(
        relation
        for relation in changes.relations
        if max(map(len, (relation.source.name, relation.relation, relation.destination.name)))
        <= LONGEST_NAME
    )
    fault = f"relations: a name has more than {LONGEST_NAME} characters"
    left_out = (*changes.left_out, *[fault] * (len(changes.relations) - len(short)))
    return replace(changes, relations=short, left_out=left_out)
