"""Webhooks of a project, and the log and queue of their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update

from pipeline.domain.errors import InvalidInput, NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import count_near
from pipeline.ledger.fetching import execute, fetch, fetch_known
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables.webhooks import webhook_deliveries, webhooks
from pipeline.webhooks.sql import statement

NO_SUCH_WEBHOOK = "Webhook not found"
NO_SUCH_DELIVERY = "Delivery not found: the log keeps them for a week."
# Maximum per project: every change of a memory inserts a row for each webhook.
MOST_WEBHOOKS = 100
KEPT_FOR = timedelta(days=7)
FORGOTTEN_AT_ONCE = 1_000
# Maximum number of waiting deliveries of a webhook.
MOST_OPEN = 10_000
# Minimum time for which a webhook that never answered is tried.
SILENT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secret. `disabled_reason`: set if the delivery disabled it."""

    id: UUID
    project_id: ProjectId
    name: str
    url: str
    event_types: Sequence[str]
    is_active: bool
    disabled_reason: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """A line of the log. The body is left out, because it contains a user's text."""

    id: UUID
    event_type: str
    state: str
    attempts: int
    due_at: datetime | None
    status_code: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Try:
    """A delivery that a process has claimed. `sent_at`: the ledger's time in unix seconds."""

    id: UUID
    webhook_id: UUID
    attempt: int
    url: str
    secret: str
    body: str
    sent_at: int


@dataclass(frozen=True, slots=True)
class TryResult:
    """Result of a try. `pause_s`: seconds until the next try, if the state is still PENDING.

    `gone`: the receiver answered 410; `timed_out`: it did not answer in time.
    """

    state: str
    pause_s: float | None = None
    status_code: int | None = None
    error: str | None = None
    gone: bool = False
    timed_out: bool = False

    @property
    def answered(self) -> bool:
        """Tell if the receiver answered, with any status."""
        return self.status_code is not None


class Webhooks(LedgerStore):
    """Manage webhooks and claim their deliveries."""

    # Webhooks of a project

    async def create(
        self, project_id: ProjectId, *, name: str, url: str, event_types: Sequence[str], secret: str
    ) -> Webhook:
        """Create a webhook. Errors: InvalidInput if the project has the maximum number."""
        if len(await self.of(project_id)) >= MOST_WEBHOOKS:
            raise InvalidInput(f"A project may have {MOST_WEBHOOKS} webhooks; delete one first.")
        query = insert(webhooks).values(
            id=uuid4(),
            project_id=project_id,
            name=name,
            url=url,
            event_types=list(event_types),
            secret=secret,
        )
        [row] = await fetch(self._single, query.returning(webhooks))
        return value_of(Webhook, row)

    async def of(self, project_id: ProjectId) -> list[Webhook]:
        """Return the project's webhooks, oldest first."""
        query = select(webhooks).where(webhooks.c.project_id == project_id)
        return [
            value_of(Webhook, row)
            for row in await fetch(self._single, query.order_by(webhooks.c.created_at))
        ]

    async def change(
        self, project_id: ProjectId, webhook_id: UUID, values: Mapping[str, Any]
    ) -> None:
        """Update columns of a webhook. Errors: NotFound.

        Enabling it resets its failure counters.
        """
        changed = dict(values) | {"updated_at": func.now()}
        if values.get("is_active"):
            changed |= {"dead_in_a_row": 0, "silent_tries": 0, "disabled_reason": None}
        query = update(webhooks).where(_is_webhook(project_id, webhook_id)).values(changed)
        if not await fetch(self._single, query.returning(webhooks.c.id)):
            raise NotFound(NO_SUCH_WEBHOOK)

    async def remove(self, project_id: ProjectId, webhook_id: UUID) -> None:
        """Delete a webhook with all its deliveries. Errors: NotFound."""
        # Lock order, as in record_try.sql: deliveries, then their webhook.
        mine = select(webhooks.c.id).where(_is_webhook(project_id, webhook_id))
        pending = delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id.in_(mine))
        await fetch(self._single, pending.returning(webhook_deliveries.c.id))
        query = delete(webhooks).where(_is_webhook(project_id, webhook_id))
        if not await fetch(self._single, query.returning(webhooks.c.id)):
            raise NotFound(NO_SUCH_WEBHOOK)

    # Log of deliveries

    async def log(
        self, project_id: ProjectId, webhook_id: UUID, *, state: str | None, limit: int, offset: int
    ) -> tuple[list[Delivery], int]:
        """Return a page of deliveries, newest first, and their number. Errors: NotFound.

        The number is approximate for far pages: see `count_near`.
        """
        its_id = select(webhooks.c.id).where(_is_webhook(project_id, webhook_id))
        await fetch_known(self._single, its_id, missing=NO_SUCH_WEBHOOK)
        table = webhook_deliveries.c
        where = and_(table.webhook_id == webhook_id, *([table.state == state] if state else []))
        ids = select(table.id).where(where)
        count = await count_near(self._single, ids, limit=limit, offset=offset)
        query = select(webhook_deliveries).where(where)
        newest = query.order_by(table.created_at.desc(), table.id).limit(limit).offset(offset)
        return [value_of(Delivery, row) for row in await fetch(self._single, newest)], count

    async def redeliver(self, project_id: ProjectId, webhook_id: UUID, delivery_id: UUID) -> None:
        """Queue a delivery again in any state, with its full number of tries. Errors: NotFound."""
        table = webhook_deliveries.c
        query = (
            update(webhook_deliveries)
            .where(
                table.project_id == project_id,
                table.webhook_id == webhook_id,
                table.id == delivery_id,
            )
            .values(state="PENDING", attempts=0, due_at=func.now(), ended_at=None)
        )
        if not await fetch(self._single, query.returning(table.id)):
            raise NotFound(NO_SUCH_DELIVERY)

    # Queue of deliveries, for couriers

    async def claim(
        self,
        *,
        limit: int,
        each: int,
        each_project: int,
        lease: timedelta,
        under_way: Sequence[UUID] = (),
        slow: Collection[UUID] = (),
    ) -> list[Try]:
        """Claim due deliveries, from one project after the other, until the lease ends.

        `each` and `each_project`: maximum number of running tries per webhook and per project. The
        caller's running tries count (`under_way`: their webhooks). A `slow` webhook gets one.
        """
        values = {
            "limit": limit,
            "each": each,
            "each_project": each_project,
            "lease": lease,
            "under_way": list(under_way),
            "slow": list(slow),
        }
        rows = await fetch(self._single, statement("claim_deliveries"), values)
        return [value_of(Try, row, attempt=row.attempts) for row in rows]

    async def end(self, done: Try, result: TryResult, *, most_dead: int, most_silent: int) -> None:
        """Record the result of a try, unless a newer try of the delivery has begun."""
        values = {
            **columns_of(done, "id", "attempt"),
            **columns_of(result, "state", "status_code", "error", "gone"),
            "pause": None if result.pause_s is None else timedelta(seconds=result.pause_s),
            "most_dead": most_dead,
            "most_silent": most_silent,
            "silent_for": SILENT_FOR,
        }
        await execute(self._single, statement("record_try"), values)

    async def forget(self) -> None:
        """Delete old deliveries: ended ones, and unsent ones of disabled webhooks."""
        values = {"age": KEPT_FOR, "limit": FORGOTTEN_AT_ONCE}
        async with self._single.connect() as connection:
            while (await connection.execute(statement("forget_deliveries"), values)).rowcount:
                pass

    async def give_up_excess(self, most: int = MOST_OPEN) -> int:
        """Mark the oldest waiting deliveries of each webhook beyond `most` as dead.

        Returns their number.
        """
        why = f"More than {most} deliveries of this webhook waited: the oldest are given up."
        values = {"most": most, "limit": FORGOTTEN_AT_ONCE, "why": why}
        return await execute(self._single, statement("give_up_deliveries"), values)


def _is_webhook(project_id: ProjectId, webhook_id: UUID) -> ColumnElement[bool]:
    return and_(webhooks.c.project_id == project_id, webhooks.c.id == webhook_id)
