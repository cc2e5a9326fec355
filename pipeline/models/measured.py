"""Models and embedders that are timed, and whose failures are counted."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from prometheus_client import Counter, Histogram

from pipeline import telemetry
from pipeline.domain.errors import StageError
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, StoredRelation
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.ports import Embedder, ExtractionRequest, MemoryModel

T = TypeVar("T")


class MeasuredModel:
    """The MemoryModel port. Errors: as the model's."""

    def __init__(self, model: MemoryModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return await self._timed("extract", self._model.extract(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return await self._timed("decide", self._model.decide(facts, neighbours, instructions))

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        return await self._timed("relate", self._model.relate(facts, current))

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        return await self._timed("distil", self._model.distil(question, memories))

    async def close(self) -> None:
        await self._model.close()

    async def _timed(self, task: str, answer: Awaitable[Answer[T]]) -> Answer[T]:
        with _measured(telemetry.model_seconds, telemetry.model_errors, self.name, task):
            return await answer


class MeasuredEmbedder:
    """The Embedder port. Errors: as the embedder's."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    async def dimensions(self) -> int:
        return await self._embedder.dimensions()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        with _measured(telemetry.embedder_seconds, telemetry.embedder_errors, self.name):
            return await self._embedder.embed(texts)

    async def close(self) -> None:
        await self._embedder.close()


@contextmanager
def _measured(seconds: Histogram, errors: Counter, model: str, *labels: str) -> Iterator[None]:
    """Observe how long the block takes, and count the error it ends with by its code."""
    begun = time.perf_counter()
    try:
        yield
    except StageError as error:
        errors.labels(model, error.code).inc()
        raise
    finally:
        seconds.labels(model, *labels).observe(time.perf_counter() - begun)
