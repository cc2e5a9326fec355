"""Statistics of the words of large scopes, cached in memory for a short time.

    absent ──► counted by the search that needs them, one scope at a time
    fresh  ──► used
    old    ──► used, and counted again beside the search

A scope that has become small has none: it is compared whole again.

They are in no table: no writer maintains them, and no result shows them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from time import monotonic

import structlog

from pipeline.domain.errors import TransientError
from pipeline.ledger.byte_cache import ByteCache
from pipeline.search.words.large_scopes import WordStatistics

log = structlog.get_logger()

# Seconds for which statistics are fresh, and for which they are used.
FRESH_S, USED_S = 60.0, 3_600.0
# Memory of a process for the statistics of all scopes; those of one have up to 10 MB.
MOST_BYTES, LARGEST_SHARE = 40_000_000, 0.25

# Counts the words of a scope; None if it is small.
Count = Callable[[], Awaitable[WordStatistics | None]]


@dataclass(frozen=True, slots=True)
class _Kept:
    statistics: WordStatistics
    since: float


class StatisticsCache:
    """Word statistics by scope."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kept = ByteCache(
            MOST_BYTES, lambda entry: entry.statistics.size_bytes, largest_share=LARGEST_SHARE
        )
        self._one_at_a_time = asyncio.Lock()
        self._recounts: dict[Hashable, asyncio.Task[None]] = {}

    def get(self, scope: Hashable, count: Count) -> WordStatistics | None:
        """The statistics of a scope, if they were counted; `count` renews old ones."""
        entry: _Kept | None = self._kept.get(scope)
        age_s = USED_S if entry is None else self._clock() - entry.since
        if entry is None or age_s >= USED_S:
            return None
        if age_s >= FRESH_S and scope not in self._recounts:
            task = asyncio.create_task(self._recount(scope, count))
            self._recounts[scope] = task
            task.add_done_callback(lambda _: self._recounts.pop(scope, None))
        return entry.statistics

    async def counted(self, scope: Hashable, count: Count) -> WordStatistics | None:
        """The statistics of a scope; None if it is small.

        Scopes are counted one at a time, to bound the load.
        """
        async with self._one_at_a_time:
            if statistics := self.get(scope, count):
                return statistics
            return await self._count(scope, count)

    async def _recount(self, scope: Hashable, count: Count) -> None:
        try:
            async with self._one_at_a_time:
                await self._count(scope, count)
        except TransientError as error:
            log.warning("words_not_counted", code=error.code)

    async def _count(self, scope: Hashable, count: Count) -> WordStatistics | None:
        statistics = await count()
        if statistics is None:
            self._kept.pop(scope, None)
        else:
            self._kept[scope] = _Kept(statistics, self._clock())
        return statistics
