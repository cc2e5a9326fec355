"""Base classes of wrappers around a model or an embedder.

A subclass overrides only the calls that it changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.ports import Embedder, ExtractionRequest, MemoryModel

T = TypeVar("T")
# A question to any model.
Ask = Callable[[MemoryModel], Awaitable[Answer[T]]]


class WrappedModel:
    """The MemoryModel port over another model; every question goes through `_call`."""

    def __init__(self, model: MemoryModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return await self._call("extract", lambda model: model.extract(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return await self._call(
            "decide", lambda model: model.decide(facts, neighbours, instructions)
        )

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        return await self._call("relate", lambda model: model.relate(request))

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        return await self._call("distil", lambda model: model.distil(question, memories))

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        return await self._call("curate", lambda model: model.curate(request))

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        return await self._call("summarize", lambda model: model.summarize(request))

    async def close(self) -> None:
        await self._model.close()

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        """Put the question to the model; `task` is the name of the port's method."""
        return await ask(self._model)


class WrappedEmbedder:
    """The Embedder port over another embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    async def dimensions(self) -> int:
        return await self._embedder.dimensions()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedder.embed(texts)

    async def close(self) -> None:
        await self._embedder.close()
