"""Wrappers that measure the time of model calls and count their errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from prometheus_client import Counter, Histogram

from pipeline import telemetry
from pipeline.domain.errors import StageError
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.models.wrapped import Ask, WrappedEmbedder, WrappedModel

T = TypeVar("T")


class MeasuredModel(WrappedModel):
    """The MemoryModel port with metrics. Errors: those of the model."""

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        with _measured(telemetry.model_seconds, telemetry.model_errors, self.name, task):
            return await ask(self._model)


class MeasuredEmbedder(WrappedEmbedder):
    """The Embedder port with metrics. Errors: those of the embedder."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        with _measured(telemetry.embedder_seconds, telemetry.embedder_errors, self.name):
            return await super().embed(texts)


@contextmanager
def _measured(seconds: Histogram, errors: Counter, model: str, *labels: str) -> Iterator[None]:
    """Observe the duration of the block, and count a StageError by its code."""
    started = time.perf_counter()
    try:
        yield
    except StageError as error:
        errors.labels(model, error.code).inc()
        raise
    finally:
        seconds.labels(model, *labels).observe(time.perf_counter() - started)
