"""A chain of models: a question that one of them does not answer goes to the next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import structlog

from pipeline.domain.errors import (
    MalformedAnswer,
    ModelRejected,
    ModelUnavailable,
    SettingRejected,
    StageError,
    TransientError,
)
from pipeline.domain.usage import Answer, FailedTry, Usage
from pipeline.models.wrapped import Ask, WrappedModel
from pipeline.ports import MemoryModel

T = TypeVar("T")

log = structlog.get_logger()


class FallbackModel(WrappedModel):
    """The MemoryModel port over several models; the first one that answers a question counts.

    The usage of an answer is that of the model that gave it. Its `failed` lists the models before.

    Errors: ModelUnavailable if a model was unavailable, because it may answer later; otherwise the
    error of the first model. The text names every model.
    """

    def __init__(self, models: Sequence[MemoryModel]) -> None:
        super().__init__(models[0])
        self._models = models

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        """Put the question to one model after the other until one of them answers."""
        failed: list[FailedTry] = []
        errors: dict[str, StageError] = {}
        for model in self._models:
            started = time.perf_counter()
            try:
                answer = await ask(model)
            except (MalformedAnswer, ModelRejected, ModelUnavailable) as error:
                ms = (time.perf_counter() - started) * 1000
                failed.append(FailedTry(error.code, error.usage, ms))
                errors[model.name] = error
                log.warning("model_failed", model=model.name, task=task, code=error.code)
            else:
                return replace(answer, usage=replace(answer.usage, failed=tuple(failed)))
        raise _combined(errors, Usage(failed=tuple(failed)))

    async def close(self) -> None:
        for model in self._models:
            await model.close()


def _combined(errors: dict[str, StageError], usage: Usage) -> StageError:
    """One error for those of all models, with this usage.

    `retry_after_s`: the shortest that a provider asked for; None if one asked for none.
    """
    text = "; ".join(
        str(error) if name in str(error) else f"{name}: {error}" for name, error in errors.items()
    )
    waits = [error for error in errors.values() if isinstance(error, TransientError)]
    delays = [error.retry_after_s for error in waits]
    combined: StageError
    if delays:
        given = [delay for delay in delays if delay is not None]
        soonest = min(given) if len(given) == len(delays) else None
        rejected = all(isinstance(error, SettingRejected) for error in waits)
        combined = (SettingRejected if rejected else ModelUnavailable)(text, retry_after_s=soonest)
    else:
        combined = type(next(iter(errors.values())))(text)
    combined.usage = usage
    return combined
