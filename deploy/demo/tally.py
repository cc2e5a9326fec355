"""Counts of receipts: outcomes, cost, batches, changed memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deploy.demo.answers import DemoEvent, DemoMemories

OUTCOMES = ("ADD", "UPDATE", "DELETE", "NOOP")
# Outcomes of the three sessions with local/rules, in addition to a DELETE.
EXPECTED = frozenset({"ADD", "UPDATE", "NOOP"})
RULES = "local/rules"


@dataclass(frozen=True)
class Cost:
    """The cost of events. `usd`: None if the price is unknown, or if no model was called."""

    models: tuple[str, ...]
    calls: int
    tokens: int
    usd: float | None
    batches: int
    events: int


def outcomes(events: Iterable[DemoEvent]) -> Counter[str]:
    """Number of receipt lines by outcome."""
    return Counter(line.event for event in events for line in event.results)


def unexplained(events: Iterable[DemoEvent]) -> int:
    """Number of receipt lines without a reason."""
    return sum(not line.reason for event in events for line in event.results)


def missing(events: Sequence[DemoEvent]) -> list[str]:
    """Expected outcomes that are not in any receipt."""
    return sorted(EXPECTED - outcomes(events).keys())


def changed(events: Iterable[DemoEvent]) -> str | None:
    """Id of the first memory that an UPDATE changed, or None."""
    updated = (line.id for event in events for line in event.results if line.event == "UPDATE")
    return next((memory_id for memory_id in updated if memory_id), None)


def cost(events: Sequence[DemoEvent]) -> Cost:
    """The cost of the events, as the sum of their own shares."""
    spent = [event.usage for event in events]
    priced = [usage.cost_usd for usage in spent if usage.cost_usd is not None]
    return Cost(
        models=tuple(dict.fromkeys(name for usage in spent for name in usage.models)),
        calls=sum(usage.calls for usage in spent),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in spent),
        usd=sum(priced) if priced else None,
        batches=len({usage.batch.id for usage in spent if usage.batch}),
        events=len(events),
    )


def due(events: Iterable[DemoEvent]) -> int:
    """Number of memories that should exist according to the receipts."""
    counted = outcomes(events)
    return counted["ADD"] - counted["DELETE"]


def doubles(stored: DemoMemories) -> int:
    """Number of memories whose text is stored more than once for the same owner."""
    pairs = [(row.user_id, row.memory) for row in stored.results]
    return len(pairs) - len(set(pairs))
