"""A model and an embedder behind the circuit breaker that all processes share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, StoredRelation
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import Vector
from pipeline.models.cooldowns import PROBE_EVERY, Cooldowns, Turn
from pipeline.ports import Embedder, ExtractionRequest, MemoryModel

T = TypeVar("T")

LONGEST_CAUSE = 300
PROBED = f" (one call probes it every {PROBE_EVERY.total_seconds():.0f} s)"
_project: ContextVar[ProjectId | None] = ContextVar("_project", default=None)


@contextmanager
def on_behalf_of(project_id: ProjectId) -> Iterator[None]:
    """Calls inside are made for this project: its failures alone stop no other."""
    token = _project.set(project_id)
    try:
        yield
    finally:
        _project.reset(token)


class GuardedModel:
    """The MemoryModel port: the same four questions, not put to a provider known to be down.

    Errors: as the model's; ModelUnavailable at once, without a call, while another one probes.
    """

    def __init__(self, model: MemoryModel, cooldowns: Cooldowns) -> None:
        self._model = model
        self._cooldowns = cooldowns

    @property
    def name(self) -> str:
        return self._model.name

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return await self._guarded(lambda: self._model.extract(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return await self._guarded(lambda: self._model.decide(facts, neighbours, instructions))

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        return await self._guarded(lambda: self._model.relate(facts, current))

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        return await self._guarded(lambda: self._model.distil(question, memories))

    async def close(self) -> None:
        await self._model.close()

    async def _guarded(self, ask: Callable[[], Awaitable[Answer[T]]]) -> Answer[T]:
        return await _call(self.name, self._cooldowns, ask, lambda answer: bool(answer.usage.calls))


class GuardedEmbedder:
    """The Embedder port: no request goes to a provider known to be down.

    Errors: as the embedder's; ModelUnavailable at once while another request probes.
    """

    def __init__(self, embedder: Embedder, cooldowns: Cooldowns) -> None:
        self._embedder = embedder
        self._cooldowns = cooldowns

    @property
    def name(self) -> str:
        return self._embedder.name

    async def dimensions(self) -> int:
        return await self._embedder.dimensions()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await _call(self.name, self._cooldowns, lambda: self._embedder.embed(texts), bool)

    async def close(self) -> None:
        await self._embedder.close()


async def _call(
    provider: str,
    cooldowns: Cooldowns,
    ask: Callable[[], Awaitable[T]],
    reached: Callable[[T], bool],
) -> T:
    """`reached`: whether an answer came from the provider, and not without a request."""
    project_id = _project.get()
    turn = await cooldowns.enter(provider, project_id)
    if turn is Turn.CLOSED:
        cause = await cooldowns.cause(provider) or f"{provider}: no answer"
        raise ModelUnavailable(f"{cause}{PROBED}")
    try:
        answer = await ask()
    except ModelUnavailable as error:
        await cooldowns.failed(
            provider,
            retry_after_s=error.retry_after_s,
            project_id=project_id,
            cause=str(error)[:LONGEST_CAUSE],
        )
        raise
    if turn is not Turn.FREE and reached(answer):
        await cooldowns.answered(provider)
    return answer
