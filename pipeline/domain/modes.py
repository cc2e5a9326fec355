"""Modes: how much work a language model does for an add, and the budgets that limit it.

    below 80 % of the budget    the mode that the add or the project asks for
    from 80 %                   append: one call for an add
    from 100 %                  turns: no call

The mode is chosen before the first call. Before each further call the budget is checked again: if
it is used up, the facts are added without a comparison, and the graph is left out. The costs of the
calls in progress are not known, so a limit is exceeded by these at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# Share of a budget from which adds use the mode `append`: what is left lasts for more of them.
APPEND_FROM = 0.8


class Mode(StrEnum):
    """Way to process the messages of an add, from the most to the least work of a model."""

    CONSOLIDATE = "consolidate"
    """Facts are extracted, compared with the memories, and applied; the graph is updated."""
    APPEND = "append"
    """Facts are extracted with one call and added. Of several memories with one value at a time,
    the newest statement is current; the older ones are superseded when they are read. An end
    ("no longer works at Bosch") changes the memory whose words it has.
    """
    TURNS = "turns"
    """No model is called: the messages are kept, and searches find them as turns."""


class Period(StrEnum):
    """Calendar period of a budget, in UTC."""

    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class CostLimit:
    """Limit of model costs in a period: `tokens` of prompts and answers, `usd`, or both."""

    tokens: int | None = None
    usd: float | None = None
    per: Period = Period.DAY


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budget of a whole project, and budget of each of its users."""

    project: CostLimit | None = None
    user: CostLimit | None = None


NO_BUDGETS = Budgets()


@dataclass(frozen=True, slots=True)
class Spent:
    """Costs in the current period of a budget. Calls of unknown price count 0 dollars."""

    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class ChosenMode:
    """The mode of an add, and the reason if a budget lowered it."""

    mode: Mode = Mode.CONSOLIDATE
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """Use of one limit. `limit`: the limit in words. `share`: 1.0 if it is used up."""

    limit: str
    share: float

    @property
    def reason(self) -> str:
        """The sentence on a receipt."""
        return f"Budget: {min(self.share, 1):.0%} of {self.limit} is used."


def uses(spent: Mapping[str, tuple[CostLimit, Spent]]) -> list[Use]:
    """The use of all limits, highest first. `spent`: budget and costs, by the budget's owner."""
    parts = [use for owner, pair in spent.items() for use in _uses(owner, *pair)]
    return sorted(parts, key=lambda use: -use.share)


def lowered(wanted: Mode, limits: Sequence[Use]) -> ChosenMode:
    """The wanted mode, or the lower one that the most used limit allows."""
    if not limits or limits[0].share < APPEND_FROM:
        return ChosenMode(wanted)
    use = limits[0]
    allowed = Mode.TURNS if use.share >= 1 else Mode.APPEND
    order = list(Mode)
    if order.index(allowed) <= order.index(wanted):
        return ChosenMode(wanted)
    return ChosenMode(allowed, use.reason)


def _uses(owner: str, budget: CostLimit, spent: Spent) -> Iterator[Use]:
    if budget.tokens is not None:
        limit = f"the {owner}'s {budget.tokens} tokens per {budget.per}"
        yield Use(limit, _share(spent.tokens, budget.tokens))
    if budget.usd is not None:
        limit = f"the {owner}'s {budget.usd:g} USD per {budget.per}"
        yield Use(limit, _share(spent.usd, budget.usd))


def _share(used: float, limit: float) -> float:
    return used / limit if limit else 1.0


def budgets_of(stored: Mapping[str, Any] | None) -> Budgets:
    """Budgets from their stored form."""
    parts = {
        name: CostLimit(value.get("tokens"), value.get("usd"), Period(value["per"]))
        for name, value in (stored or {}).items()
    }
    return Budgets(parts.get("project"), parts.get("user"))
