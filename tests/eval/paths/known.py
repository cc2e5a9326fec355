"""A model that knows the relations of each text: a perfect reader for questions of several hops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.eval.paths.worlds import Edge


class KnownRelations(RulesModel):
    """Model for which each message is a fact; it knows the relations of each text."""

    def __init__(self, edges: Mapping[str, Sequence[Edge]]) -> None:
        super().__init__()
        self._edges = edges

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(tuple(Fact(m.message.content, m.source) for m in request.messages))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return Answer(tuple(Decision(n, Outcome.ADD, "New.", f.text) for n, f in enumerate(facts)))

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        return Answer(
            GraphChanges(
                tuple(
                    Relation(Entity(source, "thing"), name, Entity(target, "thing"), fact)
                    for fact, text in enumerate(request.texts)
                    for source, name, target in self._edges[text]
                )
            )
        )
