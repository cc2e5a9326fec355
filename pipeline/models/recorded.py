"""A model that repeats what another one answered: replays a batch without asking anybody.

Facts, reasons and relations come back to the letter. Ids do not: the copy of a memory has an id of
its own, so a recorded target is looked up by the words it had when it was decided on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, StoredRelation
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Consolidated, Extracted, Related, Retrieved, read_if_any
from pipeline.domain.usage import Answer, Usage
from pipeline.models.ports import ModelStores
from pipeline.ports import ExtractionRequest
from pipeline.text.equality import text_hash

V = TypeVar("V")
NAME = "recorded"
COST = Usage(model=NAME)


class RecordedModel:
    """The MemoryModel port, for one batch that repeats `batch.override.recorded`.

    Errors: MalformedAnswer where nothing is recorded: the question was never answered.
    """

    def __init__(self, batch: Batch, ledger: ModelStores) -> None:
        self._batch = batch
        self._ledger = ledger

    @property
    def name(self) -> str:
        return NAME

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        extracted = _saved(await self._recorded(), Extracted)
        return Answer(extracted.facts, COST, extracted.note)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        recorded = await self._recorded()
        decisions = {one.fact: one for one in _saved(recorded, Consolidated).decisions}
        said = [fact.text for fact in _saved(recorded, Extracted).facts]
        texts = {one.memory_id: one.text for one in _saved(recorded, Retrieved).neighbours}
        around = await self._ledger.memories.around(self._batch.scope, list(texts.values()))

        def target(there: UUID | None) -> UUID | None:
            return around.known.get(text_hash(texts[there])) if there in texts else None

        return Answer(
            tuple(
                replace(decision, fact=place, memory_id=target(decision.memory_id))
                for place, fact in enumerate(facts)
                # Whoever said it first was asked about; what repeats it was not.
                for decision in [decisions[said.index(fact.text)]]
            ),
            COST,
        )

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        saved = _saved(await self._recorded(), Related)
        if saved.detail is not None:
            raise MalformedAnswer(f"The recorded graph failed as well: {saved.detail}")
        ended = await self._ledger.recordings.same_relations(self._batch.scope, saved.changes.ended)
        return Answer(replace(saved.changes, ended=tuple(ended)), COST)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        raise MalformedAnswer("A replay repeats what was added, and puts no question again.")

    async def close(self) -> None:
        """No connections."""

    async def _recorded(self) -> Batch:
        """The batch as it was, with what its stages put out then."""
        there = self._batch.override.recorded
        outputs = await self._ledger.recordings.outputs(there) if there else {}
        return replace(self._batch, outputs=outputs)


def _saved(recorded: Batch, kind: type[V]) -> V:
    saved = read_if_any(recorded, kind)
    if saved is None:
        raise MalformedAnswer(f"No {kind.__name__.lower()} facts are recorded for this batch.")
    return saved
