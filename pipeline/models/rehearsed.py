"""Kept answers: a dry run keeps the answers that it pays for, and the real run takes them.

An answer belongs to its scope and to the exact question: the messages with the day on which they
were said, the earlier messages, the instructions, the memories shown, and the model. If any of them
differs, the model is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter

from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.lanes import Batch
from pipeline.domain.usage import Answer, Usage
from pipeline.ledger.row_values import columns_of
from pipeline.models.kept_answers import KeptAnswers
from pipeline.models.wrapped import WrappedModel
from pipeline.ports import ExtractionRequest, MemoryModel

T = TypeVar("T")
_FACTS: TypeAdapter[tuple[Fact, ...]] = TypeAdapter(tuple[Fact, ...])
_DECISIONS: TypeAdapter[tuple[Decision, ...]] = TypeAdapter(tuple[Decision, ...])
_CHANGES: TypeAdapter[GraphChanges] = TypeAdapter(GraphChanges)
_QUESTION: TypeAdapter[Any] = TypeAdapter(Any)


class RehearsedModel(WrappedModel):
    """The MemoryModel port that looks for a kept answer first. A dry run keeps what it pays for.

    A kept answer costs nothing: its usage counts no call.
    """

    def __init__(self, model: MemoryModel, batch: Batch, answers: KeptAnswers) -> None:
        super().__init__(model)
        self._batch = batch
        self._answers = answers

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        dated = [replace(m, said_at=_day(m.said_at)) for m in request.messages]
        question = ("extract", replace(request, messages=dated))
        return await self._answer(question, _FACTS, lambda: self._model.extract(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        dated = [replace(f, said_at=f.said_at and _day(f.said_at)) for f in facts]
        shown = [replace(neighbour, similarity=0.0) for neighbour in neighbours]
        question = ("decide", dated, shown, instructions)
        return await self._answer(
            question, _DECISIONS, lambda: self._model.decide(facts, neighbours, instructions)
        )

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        undated = [replace(fact, said_at=None) for fact in request.facts]
        question = ("relate", replace(request, facts=undated))
        return await self._answer(question, _CHANGES, lambda: self._model.relate(request))

    async def _answer(
        self, question: object, kind: TypeAdapter[T], ask: Callable[[], Awaitable[Answer[T]]]
    ) -> Answer[T]:
        """The kept answer to the question, or the model's; a dry run keeps that."""
        content = _QUESTION.dump_python((self.name, question), mode="json")
        digest = hashlib.sha256(orjson.dumps(content)).digest()
        saved = await self._answers.get(self._batch.scope, digest)
        if saved is not None:
            usage = Usage(model=saved["model"], prompt=saved["prompt"])
            value, left_out = kind.validate_python(saved["value"]), tuple(saved.get("left_out", ()))
            return Answer(value, usage, saved["note"], left_out)
        answer = await ask()
        if self._batch.options.dry_run is not None:
            value = kind.dump_python(answer.value, mode="json")
            saved = {
                "value": value,
                **columns_of(answer, "note", "left_out"),
                **columns_of(answer.usage, "model", "prompt"),
            }
            scope, fence = self._batch.scope, self._batch.fence
            await self._answers.keep(scope, digest, saved, fence=fence)
        return answer


def _day(at: datetime) -> datetime:
    """The day of a time. An answer may be used later on the same day."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)
