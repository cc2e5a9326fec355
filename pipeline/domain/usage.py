"""Usage: tokens and cost of model calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of model calls. `cost_usd` is None if the price is not known."""

    model: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [u.cost_usd for u in (self, other) if u.cost_usd is not None]
        return Usage(
            model=other.model or self.model,
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A model's answer and its usage. `note` is the receipt's reason for an event without facts."""

    value: T
    usage: Usage = field(default_factory=Usage)
    note: str | None = None
