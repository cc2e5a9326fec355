"""A sample of the searches that return memories, written in batches (write-behind).

A search never waits for it, and the number of rows that a process writes is limited under any load.
What was sampled since the last write is lost if the process is killed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import structlog

from api.write_later import WriteLater
from pipeline.domain.filters import Filter, named_runs, pinned
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.memories.reads import MemoryReads, SampledRead

log = structlog.get_logger()

WRITE_EVERY_S = 5.0
# Searches between two writes that are sampled at most, and memories of each.
MOST_SEARCHES, MOST_MEMORIES = 20, 10


def may_be_sampled(tree: Filter) -> bool:
    """Tell if a search with this filter may be stored.

    It must name one owner, so that the question is erased with the owner's memories; and no run,
    because private runs leave no trace outside of themselves.
    """
    return bool(pinned(tree)) and not any(named_runs(tree))


class ReadSample(WriteLater):
    """A random sample of the searches since the last write."""

    def __init__(
        self, store: MemoryReads, *, on: bool = True, every_s: float = WRITE_EVERY_S
    ) -> None:
        super().__init__(every_s)
        self._store = store
        self._on = on
        self._seen = 0
        self._searches: list[Sequence[SampledRead]] = []

    def searched(self, reads: Sequence[SampledRead]) -> None:
        """Consider a search, with the memories that it returned, best first."""
        if not self._on or not reads:
            return
        self._seen += 1
        if len(self._searches) < MOST_SEARCHES:
            self._searches.append(reads[:MOST_MEMORIES])
        elif (place := random.randrange(self._seen)) < MOST_SEARCHES:  # noqa: S311  a sample
            self._searches[place] = reads[:MOST_MEMORIES]
        self.schedule()

    async def write(self) -> None:
        """Write the sample. If the ledger does not answer, it is lost."""
        reads = [read for search in self._searches for read in search]
        self._searches, self._seen = [], 0
        if not reads:
            return
        try:
            await self._store.add(reads)
        except LedgerUnavailable as error:
            log.warning("reads_lost", reads=len(reads), error=type(error).__name__)
