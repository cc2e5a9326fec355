"""Store of the circuit breaker's state, shared by all processes.

While a provider is down, one caller at a time probes it. Without this, a thousand parked lanes
would each call a provider that is already overloaded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.events import FailureCode
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch, fetch_row, fetch_value
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import cooldowns, shadows

# Number of failures in a row that open the circuit.
FAILURES = 3
# Maximum delay before the next probe, also if the provider asks for more.
LONGEST_S = 3_600.0
PROBE_EVERY = timedelta(seconds=2)
# Time after its due probe from which a circuit counts as that of a provider that is no longer used:
# while a lane waits for a provider, it is probed every few seconds.
UNUSED_FOR = timedelta(minutes=10)
# Seconds that a process caches "no failures", so that a search reads no row. Failures in another
# process are seen with this delay.
CLOSED_FOR_S = 1.0


# Runs before every call: compiled once and executed without SQLAlchemy, which saves 1 ms of CPU.
_FAILURES_OF = select(cooldowns.c.failures, cooldowns.c.project_id).where(
    cooldowns.c.provider == bindparam("provider")
)


class Permit(StrEnum):
    """Answer of the circuit breaker to a caller.

    FREE: no recent failure. SHAKY: some calls failed, call. PROBE: the circuit is open, and this
    caller makes the probe. REFUSED: the circuit is open, do not call.
    """

    FREE = "FREE"
    SHAKY = "SHAKY"
    PROBE = "PROBE"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The last failed call to a provider, with its error text.

    `rejected`: the provider refused the key or the model. `is_open`: the circuit is open.
    """

    cause: str | None
    rejected: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class CoolDown:
    """An open circuit: a provider that is not called until `probe_at`, but for probes."""

    provider: str
    failures: int
    since: datetime
    probe_at: datetime
    cause: str | None
    code: str | None


class Circuits(LedgerStore):
    """State of the circuit of each provider."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._closed_until: dict[str, float] = {}

    async def enter(self, provider: str, project_id: ProjectId | None = None) -> Permit:
        """Ask for a permit before a call. One caller of all processes gets PROBE every 2 seconds.

        If only one project's calls failed, the circuit is open for that project alone.
        """
        if time.monotonic() < self._closed_until.get(provider, 0.0):
            return Permit.FREE
        row = await self._direct.row(_FAILURES_OF, {"provider": provider})
        if row is None:
            self._closed_until[provider] = time.monotonic() + CLOSED_FOR_S
            return Permit.FREE
        if row.failures < FAILURES:
            return Permit.SHAKY
        if row.project_id not in (None, await self._owner_of(project_id)):
            return Permit.FREE
        probe = (
            update(cooldowns)
            .where(cooldowns.c.provider == provider, cooldowns.c.probe_at <= func.now())
            .values(probe_at=func.now() + PROBE_EVERY)
            .returning(cooldowns.c.provider)
        )
        return Permit.REFUSED if await fetch_value(self._single, probe) is None else Permit.PROBE

    async def failed(
        self,
        provider: str,
        *,
        retry_after_s: float | None,
        project_id: ProjectId | None = None,
        cause: str | None = None,
        code: FailureCode = FailureCode.LLM_UNAVAILABLE,
    ) -> None:
        """Record a failed call of a project.

        `retry_after_s`: delay that the provider asked for; it opens the circuit for all projects.
        `code`: LLM_REJECTED if the provider refuses the key or the model.
        """
        self._closed_until.pop(provider, None)
        only = None if retry_after_s else await self._owner_of(project_id)
        delay = timedelta(seconds=min(retry_after_s or 0.0, LONGEST_S))
        count = FAILURES if retry_after_s else 1
        later = func.now() + max(delay, PROBE_EVERY)
        last = {"cause": cause, "code": code}
        row = insert(cooldowns).values(
            provider=provider, failures=count, probe_at=later, project_id=only, **last
        )
        upsert = row.on_conflict_do_update(
            index_elements=[cooldowns.c.provider],
            set_={
                "failures": cooldowns.c.failures + count,
                "probe_at": func.greatest(cooldowns.c.probe_at, later),
                "project_id": case((cooldowns.c.project_id == only, cooldowns.c.project_id)),
                **last,
            },
        )
        await execute(self._single, upsert)

    async def _owner_of(self, project_id: ProjectId | None) -> ProjectId | None:
        """The project that a replay belongs to, so that its failures count as that project's.

        Read after a failure only: a replay and its project together must not count as two projects,
        whose failures open the circuit for all.
        """
        query = select(shadows.c.project_id).where(shadows.c.id == project_id)
        owner: ProjectId | None = await fetch_value(self._single, query)
        return owner or project_id

    async def answered(self, provider: str) -> None:
        """Close the circuit: the provider has answered."""
        await execute(self._single, delete(cooldowns).where(cooldowns.c.provider == provider))

    async def failure(self, provider: str) -> CallFailure | None:
        """The last failed call; None if the provider has answered since."""
        query = select(cooldowns.c.code, cooldowns.c.cause, cooldowns.c.failures).where(
            cooldowns.c.provider == provider
        )
        row = await fetch_row(self._single, query)
        if row is None:
            return None
        rejected = row.code == FailureCode.LLM_REJECTED
        return CallFailure(row.cause, rejected=rejected, is_open=row.failures >= FAILURES)

    async def cooling(self, project_id: ProjectId) -> list[CoolDown]:
        """The open circuits in use that concern a project, oldest first."""
        names = ("provider", "failures", "since", "probe_at", "cause", "code")
        query = select(*(cooldowns.c[name] for name in names)).where(
            _in_use(),
            func.coalesce(cooldowns.c.project_id, project_id) == project_id,
        )
        rows = await fetch(self._single, query.order_by(cooldowns.c.since))
        return [CoolDown(**row._asdict()) for row in rows]

    async def down(self) -> tuple[int, int]:
        """Number of open circuits in use, and the number of those that are due for a probe."""
        due = func.count().filter(cooldowns.c.probe_at <= func.now())
        columns = (func.count().label("down"), due.label("due"))
        query = select(*columns).select_from(cooldowns).where(_in_use())
        [row] = await fetch(self._single, query)
        return row.down, row.due


def _in_use() -> ColumnElement[bool]:
    return and_(cooldowns.c.failures >= FAILURES, cooldowns.c.probe_at > func.now() - UNUSED_FOR)
