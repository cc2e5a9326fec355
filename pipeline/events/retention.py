"""Deletion of rows after their retention time; never of messages, receipts, memories or history,
and of events only what an erasure has left.

Any number of processes can run it at once: each locks rows that no other one has locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import TextClause
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.events.sql import statement
from pipeline.ledger.fetching import execute

# Maximum number of rows per call, about 10 ms of work; the next call continues.
A_SHARE = 1_000
# Lifetime of the samples of the queue: more than the longest span of a chart.
SAMPLES_FOR = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Retention:
    """Delete rows after their lifetime; None keeps them without a limit.

    `keys_for`: idempotency keys and jobs of profiles. `outputs_for`: stage outputs and ended
    private runs. `audit_for`: the audit log. `reads_for`: sampled reads. `usage_for`: daily costs
    of users. `profiles_for`: past values of profiles. `states_for`: past states of memories.
    `erased_for`: erased events, and the receipts of erasures. Answers of dry runs and the samples
    of the queue have a lifetime of their own.
    """

    engine: AsyncEngine
    keys_for: timedelta
    outputs_for: timedelta | None
    audit_for: timedelta | None = None
    reads_for: timedelta = timedelta(days=30)
    usage_for: timedelta | None = None
    profiles_for: timedelta | None = None
    states_for: timedelta | None = None
    erased_for: timedelta | None = None

    async def forget_keys(self) -> int:
        """Delete idempotency keys older than `keys_for`. Returns their number. Events stay."""
        return await self._rows("idempotency_keys", "created_at", self.keys_for)

    async def forget_profile_jobs(self) -> int:
        """Delete jobs of profiles older than `keys_for`. Returns their number."""
        return await self._rows("profile_jobs", "created_at", self.keys_for)

    async def forget_profile_values(self) -> int:
        """Delete values of profiles replaced before `profiles_for`. Returns their number."""
        return await self._rows("profile_fields", "replaced_at", self.profiles_for)

    async def forget_past_states(self) -> int:
        """Delete states of memories replaced before `states_for`. Returns their number."""
        return await self._older(statement("forget_past_states"), self.states_for)

    async def forget_answers(self) -> int:
        """Delete answers of dry runs after their lifetime. Returns their number."""
        return await self._rows("kept_answers", "expires_at", timedelta(0))

    async def forget_private_runs(self) -> int:
        """Delete ended private runs older than `outputs_for`. Returns their number.

        From then on their ids are those of ordinary runs.
        """
        return await self._rows("private_runs", "ended_at", self.outputs_for)

    async def forget_erased(self) -> int:
        """Delete erased events, and erasures with their receipts, older than `erased_for`.

        Returns the number of events.
        """
        erased = await self._older(statement("forget_erased"), self.erased_for)
        return erased + await self._older(statement("forget_erasures"), self.erased_for)

    async def drop_outputs(self) -> int:
        """Delete stage outputs older than `outputs_for`. Returns their number."""
        return await self._older(statement("drop_outputs"), self.outputs_for)

    async def forget_audit(self) -> int:
        """Delete entries of the audit log older than `audit_for`. Returns their number."""
        return await self._rows("audit_entries", "at", self.audit_for)

    async def forget_samples(self) -> int:
        """Delete sampled reads and samples of the queue after their time. Returns their number."""
        reads = await self._rows("memory_reads", "at", self.reads_for)
        return reads + await self._rows("queue_samples", "minute", SAMPLES_FOR)

    async def forget_usage(self) -> int:
        """Delete daily costs of users older than `usage_for`. Returns the number of rows."""
        return await self._older(statement("forget_usage"), self.usage_for)

    async def _rows(self, table: str, time: str, age: timedelta | None) -> int:
        """Delete the rows of a table whose `time`, a column, is older than `age`."""
        return await self._older(statement("forget_rows", table=table, time=time), age)

    async def _older(self, query: TextClause, age: timedelta | None) -> int:
        """Delete rows older than `age`; none without an age."""
        if age is None:
            return 0
        single = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        return await execute(single, query, {"age": age, "limit": A_SHARE})
