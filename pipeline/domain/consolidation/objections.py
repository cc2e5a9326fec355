"""Objections to changes of memories: the reasons to refuse one, see conservation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Loss(StrEnum):
    """Reason why a change of a memory is refused."""

    VALUES = "values"
    UNSTATED = "unstated"
    OTHER_MATTER = "other_matter"
    OTHER_TIME = "other_time"


@dataclass(frozen=True, slots=True)
class Objection:
    """A refused change. `values`: the names, numbers and dates that it would lose."""

    loss: Loss
    values: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """A sentence for the receipt."""
        match self.loss:
            case Loss.VALUES:
                return f"It would lose {', '.join(self.values)}."
            case Loss.UNSTATED:
                return "The fact does not take the memory back."
            case Loss.OTHER_MATTER:
                return "The fact is about another matter."
            case Loss.OTHER_TIME:
                return "One of the two is about a time that is over: both can be true."
