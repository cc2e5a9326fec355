"""Responses about usage: counts, tokens and cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from uuid import UUID

from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of
from pipeline.accounting.balance import Totals
from pipeline.accounting.costs import Paid, Spending
from pipeline.events.event_view import EventView

# Maximum number of days in the cost by day.
DAYS_SHOWN = 31


class PaidJson(TypedDict):
    """Number of calls, tokens and cost; the cost is None if a price is unknown."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


class BatchUsageJson(PaidJson):
    """Cost of a batch, for all its events."""

    id: Id
    events: int


class UsageJson(PaidJson):
    """An event's own share of all costs, and the cost of its newest batch."""

    models: list[str]
    batch: BatchUsageJson | None


class ModelUsageJson(PaidJson):
    """The sums of one model."""

    model: str


class DayUsageJson(PaidJson):
    """The sums of one day (UTC)."""

    day: date


class SpendingJson(PaidJson):
    """Sums in total, by model, and by day for the newest days."""

    models: list[ModelUsageJson]
    days: list[DayUsageJson]


class StatsJson(TypedDict):
    """Counts under the names of the Mem0 clients, then the balance of events.

    `identity`: accepted = succeeded + failed + cancelled + pending + running.
    """

    total_memories: int
    total_add_events: int
    total_retrieval_events: int
    total_api_retrieval_events: int
    total_retrieval_events_limit: int
    total_users_with_memories: int
    total_agents_with_memories: int
    total_runs_with_memories: int
    memories_per_user: int
    memories_per_agent: int
    memories_per_run: int
    accepted: int
    succeeded: int
    failed: int
    cancelled: int
    pending: int
    running: int
    oldest_in_flight_s: float
    identity: bool
    usage: SpendingJson


def usage(row: EventView) -> UsageJson:
    """The event's own share of all costs, including failed attempts and replays. The shares of all
    events add up to the total. `batch`: cost of its newest batch, for all its events.
    """
    models = {run.model: None for run in row.stages if run.model}
    return {
        "models": list(models),
        **paid(row.paid),
        "batch": _batch(row.batch_id, row) if row.batch_id else None,
    }


def _batch(batch_id: UUID, row: EventView) -> BatchUsageJson:
    costs = paid(sum((run.paid for run in row.stages), Paid()))
    return {"id": str(batch_id), "events": row.batch_events, **costs}


def paid(amounts: Paid) -> PaidJson:
    """Number of calls, tokens and cost."""
    return json_of(PaidJson, amounts)


def spending(row: Spending) -> SpendingJson:
    """Sums in total, by model, and by day for the newest days."""
    days = list(row.days.items())[-DAYS_SHOWN:]
    return {
        **paid(row.total),
        "models": [{"model": model, **paid(amounts)} for model, amounts in row.models.items()],
        "days": [{"day": day, **paid(amounts)} for day, amounts in days],
    }


def stats(row: Totals, owners: Mapping[str, int], spent: Spending) -> StatsJson:
    """The counts under the names of the Mem0 clients, then the balance of events."""
    users, agents, runs = (owners.get(kind, 0) for kind in ("user", "agent", "run"))
    return json_of(
        StatsJson,
        row,
        total_memories=row.memories,
        total_add_events=row.adds,
        total_retrieval_events=row.searches,
        total_api_retrieval_events=row.searches,
        # No limit.
        total_retrieval_events_limit=0,
        total_users_with_memories=users,
        total_agents_with_memories=agents,
        total_runs_with_memories=runs,
        # The mean, as a whole number.
        memories_per_user=_mean(row.memories, users),
        memories_per_agent=_mean(row.memories, agents),
        memories_per_run=_mean(row.memories, runs),
        oldest_in_flight_s=round(row.oldest_in_flight_s, 3),
        identity=row.balanced,
        usage=spending(spent),
    )


def _mean(memories: int, owners: int) -> int:
    return round(memories / owners) if owners else 0
