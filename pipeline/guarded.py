"""A model behind the cool-down that all processes share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pipeline.domain import (
    Answer,
    Decision,
    Fact,
    GraphChanges,
    Instructions,
    Neighbour,
    Question,
    StoredRelation,
)
from pipeline.errors import ModelUnavailable
from pipeline.ledger.cooldowns import Cooldowns, Turn
from pipeline.ports import ExtractionRequest, MemoryModel

T = TypeVar("T")


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

    async def _guarded(self, ask: Callable[[], Awaitable[Answer[T]]]) -> Answer[T]:
        turn = await self._cooldowns.enter(self.name)
        if turn is Turn.CLOSED:
            raise ModelUnavailable(f"{self.name} is down; another call finds out when it is back.")
        try:
            answer = await ask()
        except ModelUnavailable as error:
            await self._cooldowns.failed(self.name, retry_after_s=error.retry_after_s)
            raise
        if turn is not Turn.FREE and answer.usage.calls:
            await self._cooldowns.answered(self.name)
        return answer
