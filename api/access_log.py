"""Accesses of memories, counted in this process and written in batches (write-behind).

A search never waits for them. What is counted since the last write is lost if the process is
killed, or if the ledger does not answer; a regular stop writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

import structlog

from api.write_later import WriteLater
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.memories.accesses import AccessCounts

log = structlog.get_logger()

WRITE_EVERY_S = 5.0
# Maximum number of memories between two writes; further ones are not counted.
MOST_MEMORIES = 10_000


class AccessLog(WriteLater):
    """Counts accesses until they are written."""

    def __init__(self, store: AccessCounts, *, every_s: float = WRITE_EVERY_S) -> None:
        super().__init__(every_s)
        self._store = store
        self._counts: Counter[UUID] = Counter()

    def count(self, ids: Iterable[UUID]) -> None:
        """Count one access of each memory, and write all counts after some seconds."""
        for id_ in ids:
            if id_ in self._counts or len(self._counts) < MOST_MEMORIES:
                self._counts[id_] += 1
        if self._counts:
            self.schedule()

    async def write(self) -> None:
        """Write the counts. If the ledger does not answer, they are lost."""
        if not self._counts:
            return
        counts, self._counts = self._counts, Counter()
        try:
            await self._store.add(counts)
        except LedgerUnavailable as error:
            log.warning("accesses_lost", memories=len(counts), error=type(error).__name__)
