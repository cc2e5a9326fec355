"""Responses about usage: counts, tokens and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.accounting.balance import Accounts
from pipeline.accounting.costs import Paid, Spending, total
from pipeline.events.store import EventView

# Maximum number of days in the cost by day.
DAYS_SHOWN = 31
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def usage(row: EventView) -> dict[str, Any]:
    """The event's own share of all costs, including failed attempts and replays. The shares of all
    events add up to the total. `batch`: cost of its newest batch, for all its events.
    """
    models = {run.model: None for run in row.stages if run.model}
    batch = {"id": str(row.batch_id), "events": row.batch_events}
    return {
        "models": list(models),
        **paid(row.paid),
        "batch": batch | paid(total(run.paid for run in row.stages)) if row.batch_id else None,
    }


def paid(amounts: Paid) -> dict[str, Any]:
    """Number of calls, tokens and cost."""
    return {
        "calls": amounts.calls,
        "prompt_tokens": amounts.prompt_tokens,
        "completion_tokens": amounts.completion_tokens,
        "cost_usd": amounts.cost_usd,
    }


def spending(row: Spending) -> dict[str, Any]:
    """Sums in total, by model, and by day for the newest days."""
    days = list(row.days.items())[-DAYS_SHOWN:]
    return {
        **paid(row.total),
        "models": [{"model": model, **paid(amounts)} for model, amounts in row.models.items()],
        "days": [{"day": day, **paid(amounts)} for day, amounts in days],
    }


def stats(row: Accounts, owners: Mapping[str, int], spent: Spending) -> dict[str, Any]:
    """The counts under the names of the Mem0 clients, then the balance of events."""
    kinds = ("user", "agent", "run")
    each = {kind: owners.get(kind, 0) for kind in kinds}
    return {
        "total_memories": row.memories,
        "total_add_events": row.adds,
        "total_retrieval_events": row.searches,
        "total_api_retrieval_events": row.searches,
        # No limit.
        "total_retrieval_events_limit": 0,
        **{f"total_{kind}s_with_memories": each[kind] for kind in kinds},
        # The mean, as a whole number.
        **{f"memories_per_{kind}": _mean(row.memories, each[kind]) for kind in kinds},
        "accepted": row.accepted,
        "succeeded": row.succeeded,
        "failed": row.failed,
        "cancelled": row.cancelled,
        "pending": row.pending,
        "running": row.running,
        "oldest_in_flight_s": round(row.oldest_in_flight_s, 3),
        "identity": row.balanced,
        "usage": spending(spent),
    }


def _mean(memories: int, owners: int) -> int:
    return round(memories / owners) if owners else 0
