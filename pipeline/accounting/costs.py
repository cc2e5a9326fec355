"""Cost of model calls: runs whose output was not used, and the sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select

from pipeline.accounting.sql import statement
from pipeline.domain.lanes import Activation
from pipeline.domain.modes import Period, Spent
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import FailedTry, Usage
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.row_values import columns_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables.costs import usage_daily

NANO = 10**9


@dataclass(frozen=True, slots=True)
class Paid:
    """Cost of model calls, in integers, so that shares and sums are exact.

    `nano_usd`: billionths of a dollar; None if the price is unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    nano_usd: int | None = None

    @property
    def cost_usd(self) -> float | None:
        """Cost in US dollars; None if the price is unknown."""
        return None if self.nano_usd is None else self.nano_usd / NANO

    def __add__(self, other: Paid) -> Paid:
        known = [cost.nano_usd for cost in (self, other) if cost.nano_usd is not None]
        return Paid(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(known) if known else None,
        )


def nano_usd(cost_usd: float | None) -> int | None:
    """Convert dollars to billionths, rounded as the ledger rounds."""
    return None if cost_usd is None else round(cost_usd * NANO)


@dataclass(frozen=True, slots=True)
class Spending:
    """Total cost, and the same by model and by day."""

    models: Mapping[str, Paid]
    days: Mapping[date, Paid]

    @property
    def total(self) -> Paid:
        """Total cost of all models."""
        return sum(self.models.values(), Paid())


class Costs(LedgerStore):
    """Store of costs."""

    async def add(self, activation: Activation, failed: FailedTry) -> None:
        """Record the cost of a failed try for the receipts of the activation's batch."""
        values = {
            **columns_of(activation, "batch_id", "stage"),
            **columns_of(failed, "code", "ms"),
            "prompt": failed.usage.prompt,
            **failed.usage.columns,
        }
        await execute(self._single, statement("add_failed_run"), values)

    async def add_to_usage(self, project_id: ProjectId, lane_id: UUID, usage: Usage) -> None:
        """Add the cost of calls that belong to no batch to the usage of a scope's project."""
        values = {"project_id": project_id, "lane_id": lane_id, **usage.columns}
        await execute(self._single, statement("add_to_usage"), values)

    async def spent(self, project_id: ProjectId, user_id: str | None, per: Period) -> Spent:
        """Return the costs of a project, or of one of its users, in the current day or month."""
        values = {"project_id": project_id, "user_id": user_id or "", "per": per}
        [row] = await fetch(self._single, statement("spent"), values)
        return Spent(int(row.tokens), int(row.nano_usd) / NANO)

    async def spending(
        self,
        project_id: ProjectId,
        *,
        user_id: str | None = None,
        start: date | None = None,
        end: date | None = None,
    ) -> Spending:
        """Return the cost of a project, or of one of its users.

        `start` and `end`: first and last day (UTC), both included.
        """
        table = usage_daily.c
        names = ("calls", "prompt_tokens", "completion_tokens", "cost_nano_usd")
        query = (
            select(table.day, table.model, *(func.sum(table[name]).label(name) for name in names))
            .where(table.project_id == project_id, table.user_id == (user_id or ""))
            .group_by(table.day, table.model)
            .order_by(table.day, table.model)
        )
        if start:
            query = query.where(table.day >= start)
        if end:
            query = query.where(table.day <= end)
        rows = await fetch(self._single, query)
        return Spending(models=_by(rows, "model"), days=_by(rows, "day"))


def _by(rows: Iterable[Row[Any]], column: str) -> dict[Any, Paid]:
    """Add up the rows by the value of a column."""
    sums: dict[Any, Paid] = {}
    for row in rows:
        cost = row.cost_nano_usd
        paid = Paid(
            int(row.calls),
            int(row.prompt_tokens),
            int(row.completion_tokens),
            None if cost is None else int(cost),
        )
        key = getattr(row, column)
        sums[key] = sums.get(key, Paid()) + paid
    return sums
