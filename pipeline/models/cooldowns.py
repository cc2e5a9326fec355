"""The cool-down every process shares: while a provider is down, one call at a time may find out.

Without it a thousand parked lanes would each ask a provider that is already struggling.
"""

from __future__ import annotations

import time
from datetime import timedelta
from enum import StrEnum

from sqlalchemy import bindparam, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import cooldowns

# So many failures in a row, with no answer between, and the provider counts as down.
FAILURES = 3
# Whatever a provider asks for, it is probed again after an hour.
LONGEST_S = 3_600.0
PROBE_EVERY = timedelta(seconds=2)
# Seconds a process remembers that a provider has no failures: a search reads no row for it. The
# failures of another process are seen this much later.
CLOSED_FOR_S = 1.0


# Read before every call: built once, and sent without SQLAlchemy's share of 1 ms of CPU.
_FAILURES_OF = select(cooldowns.c.failures, cooldowns.c.project_id).where(
    cooldowns.c.provider == bindparam("provider")
)


class Turn(StrEnum):
    """What a caller may do: FREE, nothing is wrong; SHAKY, some calls failed; PROBE, it is down and
    this caller may find out; CLOSED, it is down and somebody else does.
    """

    FREE = "FREE"
    SHAKY = "SHAKY"
    PROBE = "PROBE"
    CLOSED = "CLOSED"


class Cooldowns:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)
        self._closed_until: dict[str, float] = {}

    async def enter(self, provider: str, project_id: ProjectId | None = None) -> Turn:
        """Ask before a call. PROBE is given to one caller every two seconds, over all processes.

        While only one project's calls fail, the provider is down for that project alone.
        """
        if time.monotonic() < self._closed_until.get(provider, 0.0):
            return Turn.FREE
        row = await self._direct.row(_FAILURES_OF, {"provider": provider})
        if row is None:
            self._closed_until[provider] = time.monotonic() + CLOSED_FOR_S
            return Turn.FREE
        if row.failures < FAILURES:
            return Turn.SHAKY
        if row.project_id not in (None, project_id):
            return Turn.FREE
        probe = (
            update(cooldowns)
            .where(cooldowns.c.provider == provider, cooldowns.c.probe_at <= func.now())
            .values(probe_at=func.now() + PROBE_EVERY)
            .returning(cooldowns.c.provider)
        )
        async with self._engine.connect() as connection:
            return Turn.CLOSED if await connection.scalar(probe) is None else Turn.PROBE

    async def failed(
        self,
        provider: str,
        *,
        retry_after_s: float | None,
        project_id: ProjectId | None = None,
        cause: str | None = None,
    ) -> None:
        """Record a failed call of this project; where the provider named a time, it is down for
        all until then.
        """
        self._closed_until.pop(provider, None)
        only = None if retry_after_s else project_id
        asked = timedelta(seconds=min(retry_after_s or 0.0, LONGEST_S))
        count = FAILURES if retry_after_s else 1
        later = func.now() + max(asked, PROBE_EVERY)
        noted = insert(cooldowns).values(
            provider=provider, failures=count, probe_at=later, project_id=only, cause=cause
        )
        again = noted.on_conflict_do_update(
            index_elements=[cooldowns.c.provider],
            set_={
                "failures": cooldowns.c.failures + count,
                "probe_at": func.greatest(cooldowns.c.probe_at, later),
                "project_id": case((cooldowns.c.project_id == only, cooldowns.c.project_id)),
                "cause": cause,
            },
        )
        async with self._engine.connect() as connection:
            await connection.execute(again)

    async def answered(self, provider: str) -> None:
        """The provider answers again: everybody may call it."""
        async with self._engine.connect() as connection:
            await connection.execute(delete(cooldowns).where(cooldowns.c.provider == provider))

    async def cause(self, provider: str) -> str | None:
        """What its last call failed with."""
        query = select(cooldowns.c.cause).where(cooldowns.c.provider == provider)
        async with self._engine.connect() as connection:
            text: str | None = await connection.scalar(query)
        return text

    async def is_down(self, provider: str) -> bool:
        """What is known of it, without a call."""
        query = select(cooldowns.c.failures).where(cooldowns.c.provider == provider)
        async with self._engine.connect() as connection:
            return (await connection.scalar(query) or 0) >= FAILURES

    async def down(self) -> tuple[int, int]:
        """How many providers are down, and how many of those may be probed now."""
        due = func.count().filter(cooldowns.c.probe_at <= func.now())
        query = (
            select(func.count(), due).select_from(cooldowns).where(cooldowns.c.failures >= FAILURES)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one()
        return row[0], row[1]
