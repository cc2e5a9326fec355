"""Stories: batches of dated statements, planned one after the other as the stages do.

    said(0, "Edda left Tidewater.", ends=["Edda works_at Tidewater"])

Each statement is a memory of its own. `Story.graph` returns a line for each relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pipeline.domain.facts import Fact
from pipeline.domain.graph.entity_resolution import NodeSet
from pipeline.domain.graph.plan import plan_changes
from pipeline.domain.graph.values import (
    EdgeEnding,
    Entity,
    FactMemory,
    GraphChanges,
    GraphEdge,
    GraphPlan,
    GraphTypes,
    LaterStatement,
    Node,
    Relation,
)
from pipeline.domain.graph.working_graph import FactSource
from pipeline.domain.messages import Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId

Edge = tuple[str, str, str]
SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
START = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {"lives_in": "place", "visited": "place", "plans_to_visit": "place"}
KINDS |= dict.fromkeys(("works_at", "member_of"), "organization")
KINDS |= dict.fromkeys(("plays", "owns", "likes", "dislikes", "speaks", "allergic_to"), "thing")


def edge(words: str) -> Edge:
    source, relation, destination = words.split(" ", 2)
    return source, relation, destination


@dataclass(frozen=True)
class Said:
    """A statement of a day, with the relations that a model reads in it, and the fact's fields."""

    day: float
    text: str
    states: Sequence[str]
    ends: Sequence[str]
    fields: dict[str, Any]


def said(day: float, text: str, *states: str, ends: Sequence[str] = (), **fields: Any) -> Said:
    return Said(day, text, states, ends, fields)


def on(day: float) -> datetime:
    return START + timedelta(days=day)


@dataclass
class Story:
    """The stored graph and memories of a scope.

    `beside` and `added`: of the memories that arrive; see FactMemory.
    """

    nodes: dict[UUID, Node] = field(default_factory=dict)
    edges: dict[UUID, GraphEdge] = field(default_factory=dict)
    memories: list[LaterStatement] = field(default_factory=list)
    batches: int = 0
    beside: tuple[UUID, ...] = ()
    added: bool = True

    def arrive(self, *batch: Said) -> GraphPlan:
        """Plan and store a batch. Its memories are stored before, as in the stages."""
        self.batches += 1
        facts = [
            Fact(statement.text, Source(0, place), **statement.fields)
            for place, statement in enumerate(batch)
        ]
        event_id = UUID(int=1_000 + self.batches)
        sources = [FactSource(event_id, self.batches, on(statement.day)) for statement in batch]
        ids = [UUID(int=self.batches * 100 + place) for place in range(len(batch))]
        self.memories += [
            LaterStatement(
                fact.text, source.said_at, fact.valid_from or source.said_at, memory_id, event_id
            )
            for fact, source, memory_id in zip(facts, sources, ids, strict=True)
        ]
        first = min(source.said_at for source in sources)
        plan = plan_changes(
            self._answer(batch),
            facts,
            sources,
            [FactMemory(memory_id, (statement.text,), self.beside, added=self.added)
             for statement, memory_id in zip(batch, ids, strict=True)],
            nodes=NodeSet(SCOPE, self.nodes.values()),
            current=[e for e in self.edges.values() if not e.valid_to or e.valid_to > first],
            types=GraphTypes(),
            later=[memory for memory in self.memories if memory.said_at > first],
        )  # fmt: skip
        self._store(plan, sources, ids)
        return plan

    def at(self, day: float) -> set[str]:
        """The relations that hold on a day."""
        return {
            self._words(known)
            for known in self.edges.values()
            if known.valid_from <= on(day) and (not known.valid_to or on(day) < known.valid_to)
        }

    def say_again(self, words: str, day: float, text: str) -> None:
        """Let the memory of a current relation have another text since a day."""
        [known] = [e for e in self.edges.values() if not e.valid_to and self._words(e) == words]
        self.edges[known.id] = replace(known, said_at=on(day), text=text)

    def _answer(self, batch: Sequence[Said]) -> GraphChanges:
        """The answer of a model that reads each statement, and is shown the current edges."""
        relations = [
            Relation(Entity(source, "person"), name, Entity(end, KINDS.get(name, "person")), fact)
            for fact, statement in enumerate(batch)
            for source, name, end in map(edge, statement.states)
        ]
        endings = [
            EdgeEnding(known.id, fact)
            for fact, statement in enumerate(batch)
            for known in self.edges.values()
            if known.valid_to is None and self._words(known) in statement.ends
        ]
        return GraphChanges(tuple(relations), endings=tuple(endings))

    def _store(self, plan: GraphPlan, sources: Sequence[FactSource], ids: Sequence[UUID]) -> None:
        self.nodes |= {node.id: node for node in plan.nodes}
        for merge in plan.merges:
            self.nodes[merge.node_id] = replace(self.nodes[merge.node_id], root=merge.into)
        for ended in plan.ended:
            known = self.edges.pop(ended.id)
            if ended.valid_to is not None:
                self.edges[ended.id] = replace(known, valid_to=ended.valid_to)
        for new in plan.edges:
            memory_id = new.memory_id or ids[new.fact]
            [memory] = [
                statement for statement in self.memories if statement.memory_id == memory_id
            ]
            self.edges[new.id] = GraphEdge(
                new.id, new.source_id, self.nodes[new.source_id].name, new.relation,
                new.destination_id, self.nodes[new.destination_id].name, new.valid_from,
                memory.said_at, event_id=sources[new.fact].event_id, memory_id=memory_id,
                valid_to=new.valid_to, text=memory.text,
            )  # fmt: skip

    @staticmethod
    def _words(known: GraphEdge) -> str:
        return f"{known.source} {known.relation} {known.destination}"

    @property
    def graph(self) -> list[str]:
        """The relations with their days: "Edda plays squash 0-10"; without an end if current."""
        return sorted(
            f"{self._words(known)} {_day(known.valid_from)}-"
            f"{_day(known.valid_to) if known.valid_to else ''}"
            for known in self.edges.values()
        )


def _day(time: datetime) -> str:
    return f"{(time - START).total_seconds() / 86_400:g}"
