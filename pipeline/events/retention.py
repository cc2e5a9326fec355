"""Deletion of rows that are kept for a time only; never of events, messages, receipts, memories or
history.

Any number of processes may do it at once: each locks a share of the rows that no other has.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import TextClause
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.events.sql import statement

# Some 10 ms of work; the rest is due at the next call.
A_SHARE = 1_000


class Retention:
    """`outputs_for` None: stage outputs are kept without limit."""

    def __init__(
        self, engine: AsyncEngine, *, keys_for: timedelta, outputs_for: timedelta | None
    ) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._keys_for = keys_for
        self._outputs_for = outputs_for

    async def forget_keys(self) -> int:
        return await self._let_go(statement("forget_idempotency_keys"), self._keys_for)

    async def drop_outputs(self) -> int:
        if self._outputs_for is None:
            return 0
        return await self._let_go(statement("drop_outputs"), self._outputs_for)

    async def _let_go(self, query: TextClause, age: timedelta) -> int:
        async with self._engine.connect() as connection:
            return (await connection.execute(query, {"age": age, "limit": A_SHARE})).rowcount
