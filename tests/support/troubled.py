"""A model that fails for some texts, as often as a test wants."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.facts import Fact
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest


@dataclass
class Troubled(RulesModel):
    """Rules that raise `error` for a batch that contains `word`, at most `times` times."""

    word: str = ""
    error: Exception | None = None
    times: int = 10**6
    calls: list[int] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.calls.append(len(request.messages))
        if (
            self.error
            and self.times > 0
            and any(self.word in sourced.message.content for sourced in request.messages)
        ):
            self.times -= 1
            raise self.error
        return await super().extract(request)
