"""Wrappers that put a model, embedder or reranker behind the circuit breaker of all processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from pipeline.domain.errors import ModelUnavailable, SettingRejected
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.models.circuits import PROBE_EVERY, Circuits, Permit
from pipeline.models.wrapped import Ask, WrappedEmbedder, WrappedModel
from pipeline.ports import Embedder, MemoryModel, Reranker

T = TypeVar("T")

LONGEST_CAUSE = 300
PROBED = f" (one call probes it every {PROBE_EVERY.total_seconds():.0f} s)"
_project: ContextVar[ProjectId | None] = ContextVar("_project", default=None)


@contextmanager
def on_behalf_of(project_id: ProjectId) -> Iterator[None]:
    """Attribute the calls in the block to a project.

    If only one project's calls fail, the circuit opens for that project alone.
    """
    token = _project.set(project_id)
    try:
        yield
    finally:
        _project.reset(token)


class GuardedModel(WrappedModel):
    """The MemoryModel port behind the circuit breaker.

    Errors: those of the model; ModelUnavailable without a call while the circuit is open.
    """

    def __init__(self, model: MemoryModel, circuits: Circuits) -> None:
        super().__init__(model)
        self._circuits = circuits

    async def _call(self, task: str, ask: Ask[T]) -> Answer[T]:
        return await _guarded(
            self.name,
            self._circuits,
            lambda: ask(self._model),
            lambda answer: bool(answer.usage.calls),
        )


class GuardedEmbedder(WrappedEmbedder):
    """The Embedder port behind the circuit breaker.

    Errors: those of the embedder; ModelUnavailable without a request while the circuit is open.
    """

    def __init__(self, embedder: Embedder, circuits: Circuits) -> None:
        super().__init__(embedder)
        self._circuits = circuits

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await _guarded(self.name, self._circuits, lambda: self._embedder.embed(texts), bool)


class GuardedReranker:
    """The Reranker port behind the circuit breaker.

    Errors: those of the reranker; ModelUnavailable without a call while the circuit is open.
    """

    def __init__(self, reranker: Reranker, circuits: Circuits) -> None:
        self._reranker = reranker
        self._circuits = circuits

    @property
    def name(self) -> str:
        return self._reranker.name

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        return await _guarded(
            self.name, self._circuits, lambda: self._reranker.rerank(question, texts), bool
        )


async def _guarded(
    provider: str,
    circuits: Circuits,
    ask: Callable[[], Awaitable[T]],
    reached: Callable[[T], bool],
) -> T:
    """Make a call if the circuit allows it, and record the result.

    `reached`: returns True for an answer that took a request to the provider.
    """
    project_id = _project.get()
    permit = await circuits.enter(provider, project_id)
    if permit is Permit.REFUSED:
        failure = await circuits.failure(provider)
        cause = (failure.cause if failure else None) or f"{provider}: no answer"
        kind = SettingRejected if failure and failure.rejected else ModelUnavailable
        raise kind(f"{cause}{PROBED}")
    try:
        answer = await ask()
    except ModelUnavailable as error:
        await circuits.failed(
            provider,
            retry_after_s=error.retry_after_s,
            project_id=project_id,
            cause=str(error)[:LONGEST_CAUSE],
            code=error.code,
        )
        raise
    if permit is not Permit.FREE and reached(answer):
        await circuits.answered(provider)
    return answer
