"""Compaction: a collection is replaced by a copy without the remains of its deleted records.

Chroma only marks deleted vectors in its graph: they keep their memory and disk space, and each
insert visits them (measured: 15 ms of CPU with 10,000 of them beside 100 others, 0.3 ms without).
Source: https://github.com/chroma-core/chroma/issues/2594

    copy ──► pause the writers ──► wait for their last writes ──► copy the rest ──► replace

During the pause the rows of the collection stay stale, so searches find them in the ledger. An
interrupted compaction starts again: the copy is compared, not written twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from pipeline.domain.errors import CollectionMissing, StoreUnavailable
from pipeline.ports import CompactableStore
from pipeline.vector_index.compactions import Compactions

log = structlog.get_logger()

# Deleted records from which a collection is compacted; it has as many of them as others, at least.
LEAST = 1_000
# Collections that one round looks at.
LOOKED_AT = 20
# Seconds that a writer needs at most from its read of the pause to its last write.
LAST_WRITES_S = 30.0
# End of the pause if the process that compacts has ended.
LONGEST_PAUSE = timedelta(minutes=5)
COPY, FORMER = "-copy", "-former"


@dataclass(frozen=True, slots=True)
class Compaction:
    """Compacts collections, one after another."""

    store: CompactableStore
    compactions: Compactions
    least: int = LEAST
    last_writes_s: float = LAST_WRITES_S

    async def run(self) -> list[str]:
        """Compact all collections that are due. Returns their names.

        Can be stopped at any point. A collection that fails stops no other one while the store
        answers. Errors: StoreUnavailable.
        """
        done: list[str] = []
        failure: StoreUnavailable | None = None
        async with self.compactions.alone() as is_alone:
            if not is_alone:
                return done
            due = await self.compactions.due(least=self.least, limit=LOOKED_AT)
            await self._clear(due)
            for name, deleted in due.items():
                try:
                    if await self._compact_if_worn(name, deleted):
                        done.append(name)
                except StoreUnavailable as error:
                    await self.store.ping()
                    failure = error
        if failure is not None:
            raise failure
        return done

    async def _compact_if_worn(self, name: str, deleted: int) -> bool:
        """Compact a collection with as many deleted records as others. False if it is not."""
        info = await self.store.col_info(name)
        if info is None:
            await self.compactions.forget(name)
            return False
        if deleted < info.count or not await self._compact(name):
            return False
        log.info("collection_compacted", records=info.count, deleted=deleted)
        return True

    async def _clear(self, due: dict[str, int]) -> None:
        """Delete what interrupted compactions have left, but for copies that are continued."""
        for name in await self.store.list_cols():
            copy_of = name.removesuffix(COPY)
            if name.endswith(FORMER) or (copy_of != name and copy_of not in due):
                await self.store.delete_col(name)

    async def _compact(self, name: str) -> bool:
        """Replace a collection by its copy. False if it is gone, or is being filled again."""
        copy = name + COPY
        try:
            await self.store.mirror(name, copy)
            if not await self.compactions.pause(name, LONGEST_PAUSE):
                return False
            try:
                await asyncio.sleep(self.last_writes_s)
                await self.store.mirror(name, copy)
                if not await self.compactions.pause(name, LONGEST_PAUSE):
                    return False
                await self.store.replace(name, copy, former=name + FORMER)
                await self.compactions.forget(name)
            finally:
                await self.compactions.pause(name, None)
        except CollectionMissing:
            return False
        return True
