"""Usage: tokens and cost of model calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of the calls of one model. `cost_usd` is None if the price is not known.

    `prompt`: name and version of the prompt, as in `extract@0f3c52b7a9e1`; empty without a call.
    `failed`: the models that were called before without success. Their cost is not included.
    """

    model: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    prompt: str = ""
    failed: tuple[FailedTry, ...] = ()

    @property
    def columns(self) -> dict[str, Any]:
        """The model with its calls, tokens and cost, by the names of their columns."""
        names = ("model", "calls", "prompt_tokens", "completion_tokens", "cost_usd")
        return {name: getattr(self, name) for name in names}

    def __add__(self, other: Usage) -> Usage:
        costs = [u.cost_usd for u in (self, other) if u.cost_usd is not None]
        return Usage(
            model=other.model or self.model,
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(costs) if costs else None,
            prompt=other.prompt or self.prompt,
            failed=self.failed + other.failed,
        )


@dataclass(frozen=True, slots=True)
class FailedTry:
    """Usage of calls whose answer was not used, the reason, and the time that they took."""

    code: str
    usage: Usage
    ms: float


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A model's answer and its usage. `note` is the receipt's reason for an event without facts.

    `left_out`: positions of the events of which text was not read; they get the note, too.
    """

    value: T
    usage: Usage = field(default_factory=Usage)
    note: str | None = None
    left_out: tuple[int, ...] = ()
