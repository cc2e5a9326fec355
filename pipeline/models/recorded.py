"""A model that returns recorded answers: replays a batch without calling a provider.

Facts, reasons and relations are returned unchanged. Ids are not: a copied memory has a new id, so
the target of a recorded decision is found by the memory's text at the time of that decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import EdgeEnding, GraphChanges, GraphStatus, RelationRequest
from pipeline.domain.lanes import Batch
from pipeline.domain.messages import Source
from pipeline.domain.stage_outputs import Consolidated, Extracted, Related, Retrieved, read_if_any
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer, Usage
from pipeline.models.ports import ModelStores
from pipeline.ports import ExtractionRequest
from pipeline.text.equality import text_hash

V = TypeVar("V")
NAME = "recorded"
COST = Usage(model=NAME)


class RecordedModel:
    """The MemoryModel port for one batch, with the answers of the batch `override.recorded`.

    Errors: MalformedAnswer if no answer is recorded.
    """

    def __init__(self, batch: Batch, ledger: ModelStores) -> None:
        self._batch = batch
        self._ledger = ledger

    @property
    def name(self) -> str:
        return NAME

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        extracted = _saved(await self._recorded(), Extracted)
        return Answer(extracted.facts, COST, extracted.note, extracted.left_out)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        recorded = await self._recorded()
        decisions = _decisions(recorded)
        places: dict[tuple[Source, str], int] = {}
        for place, fact in enumerate(_saved(recorded, Extracted).facts):
            places.setdefault((fact.source, fact.text), place)
        texts = {
            neighbour.memory_id: neighbour.text
            for neighbour in _saved(recorded, Retrieved).neighbours
        }
        around = await self._ledger.memories.around(self._batch.scope, list(texts.values()))

        def target(there: UUID | None) -> UUID | None:
            return around.known.get(text_hash(texts[there])) if there in texts else None

        return Answer(
            tuple(
                replace(decision, fact=place, memory_id=target(decision.memory_id))
                for place, fact in enumerate(facts)
                # Equal facts of a message share the decisions on the first of them.
                for decision in decisions
                if decision.fact == places[fact.source, fact.text]
            ),
            COST,
        )

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        saved = _saved(await self._recorded(), Related)
        if saved.status is GraphStatus.FAILED:
            raise MalformedAnswer(f"The recorded graph failed as well: {saved.detail}")
        changes = saved.changes
        ids = [*changes.ended, *(ending.relation_id for ending in changes.endings)]
        ours = await self._ledger.recordings.same_relations(self._batch.scope, ids)
        endings = tuple(
            EdgeEnding(ours[ending.relation_id], ending.fact)
            for ending in changes.endings
            if ending.relation_id in ours
        )
        ended = tuple(ours[relation_id] for relation_id in changes.ended if relation_id in ours)
        return Answer(replace(changes, ended=ended, endings=endings), COST)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        raise MalformedAnswer("A replay repeats what was added, and puts no question again.")

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        raise MalformedAnswer("A replay repeats what was added, and curates nothing.")

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        raise MalformedAnswer("A replay repeats what was added, and makes no summary.")

    async def close(self) -> None:
        """No connections."""

    async def _recorded(self) -> Batch:
        return await recorded_batch(self._batch, self._ledger)


async def recorded_batch(batch: Batch, ledger: ModelStores) -> Batch:
    """The batch with the stage outputs that were recorded for the original batch."""
    original = batch.override.recorded
    outputs = await ledger.recordings.outputs(original) if original else {}
    return replace(batch, outputs=outputs)


def _decisions(recorded: Batch) -> tuple[Decision, ...]:
    """The recorded decisions; those that needed no model, if all were of that kind."""
    consolidated = read_if_any(recorded, Consolidated)
    settled = _saved(recorded, Retrieved).settled
    if consolidated is None and settled:
        return settled
    return _saved(recorded, Consolidated).decisions


def _saved(recorded: Batch, kind: type[V]) -> V:
    """The recorded output of one stage. Errors: MalformedAnswer if there is none."""
    saved = read_if_any(recorded, kind)
    if saved is None:
        raise MalformedAnswer(f"No {kind.__name__.lower()} facts are recorded for this batch.")
    return saved
