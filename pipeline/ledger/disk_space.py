"""A full disk of PostgreSQL: noticed at the first statement that fails, until a probe succeeds.

A ping and a small write succeed on a full disk, because they need no new page. The probe makes
PostgreSQL write a temporary file, which it deletes at the end of the statement: no table, no WAL,
10 ms.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.engine import clear_full, is_full
from pipeline.ledger.failures import DISK_FULL, LedgerUnavailable

PROBE_EVERY_S = 10.0
# The rows take 1 MB: more than the memory in which they would be kept.
LITTLE_MEMORY = text("SET LOCAL work_mem = '64kB'")
PROBE = text("SELECT count(*) FROM generate_series(1, 50000)")


class DiskSpace:
    """Tells if the disk has space, for the engines of one process and one database."""

    def __init__(self, engines: Collection[AsyncEngine]) -> None:
        """The first engine is used for probes."""
        self._engines = tuple(dict.fromkeys(engines))
        self._error: LedgerUnavailable | None = None
        self._probed_at = 0.0

    async def require(self) -> None:
        """Check that no statement has met a full disk, or that a later probe has found space.

        Probes are made at most every PROBE_EVERY_S. Errors: LedgerUnavailable.
        """
        if not any(map(is_full, self._engines)):
            return
        if self._error is not None and time.monotonic() < self._probed_at + PROBE_EVERY_S:
            raise self._error
        self._probed_at = time.monotonic()
        try:
            async with self._engines[0].begin() as connection:
                await connection.execute(LITTLE_MEMORY)
                await connection.execute(PROBE)
        except LedgerUnavailable as error:
            self._error = error if error.refuses_writes == DISK_FULL else self._error
            raise
        self._error = None
        for engine in self._engines:
            clear_full(engine)
