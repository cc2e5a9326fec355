"""Wrappers that measure and trace model calls, and count their errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from prometheus_client import Counter, Histogram

from pipeline import telemetry, tracing
from pipeline.domain.errors import StageError
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.models.wrapped import Ask, WrappedEmbedder, WrappedModel

T = TypeVar("T")


class MeasuredModel(WrappedModel):
    """The MemoryModel port with metrics. Errors: those of the model."""

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        """Call the model in a span that has the tokens of its answer."""
        attributes = {"memlane.task": task}
        with (
            _measured(telemetry.model_seconds, telemetry.model_errors, self.name, task),
            _traced("chat", self.name, attributes) as span,
        ):
            answer = await ask(self._model)
            span.set(
                {
                    "gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
                }
            )
            return answer


class MeasuredEmbedder(WrappedEmbedder):
    """The Embedder port with metrics. Errors: those of the embedder."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        attributes = {"memlane.texts": len(texts)}
        with (
            _measured(telemetry.embedder_seconds, telemetry.embedder_errors, self.name),
            _traced("embeddings", self.name, attributes),
        ):
            return await super().embed(texts)


def _traced(
    operation: str, model: str, attributes: tracing.Attributes
) -> AbstractContextManager[tracing.TraceSpan]:
    """The span of a call, its retries included."""
    named = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
    return tracing.span(f"{operation} {model}", {**named, **attributes}, kind="CLIENT")


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
