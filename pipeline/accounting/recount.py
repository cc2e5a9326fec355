"""Recount: compare the books with the rows that they count, and correct them."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.accounting.balance import fold_all
from pipeline.accounting.sql import statement
from pipeline.ledger.store import LedgerStore

# The numbers of owners follow from the counts of the owners: a trigger changes them when entries
# are folded, so they are corrected last.
OWNERS_LAST = (False, True)


class Recount(LedgerStore):
    """Comparison of the books with all rows. Reads whole tables: not for a tick."""

    async def wrong(self) -> int:
        """Number of counts that differ from their rows."""
        async with self._engine.execution_options(
            isolation_level="REPEATABLE READ"
        ).connect() as connection:
            await _allow_full_reads(connection)
            rows = [
                (await connection.execute(statement("wrong_counts"), {"plural": plural})).all()
                for plural in OWNERS_LAST
            ]
        return sum(map(len, rows))

    async def correct(self) -> int:
        """Correct all counts. Returns the number of corrections.

        Safe while events are accepted and processed. Several at once correct twice: one transaction
        at a time has the lock of the fold.
        """
        corrected = 0
        for plural in OWNERS_LAST:
            async with self._engine.begin() as connection:
                await _allow_full_reads(connection)
                await fold_all(connection)  # and hold its lock
                values = {"plural": plural}
                corrections = await connection.execute(statement("correct_books"), values)
                corrected += corrections.rowcount
                await fold_all(connection)
        return corrected


async def _allow_full_reads(connection: AsyncConnection) -> None:
    await connection.execute(text("SET LOCAL enable_seqscan = on"))
    await connection.execute(text("SET LOCAL plan_cache_mode = auto"))
