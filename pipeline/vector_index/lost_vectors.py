"""Collections of an index that the vector store has lost, after a wipe or a restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.scope import Scope
from pipeline.ports import CollectionInfo, VectorStore
from pipeline.vector_index.collections import Collections

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LostVectors:
    """Search for lost collections of one index.

    `family`: prefix of the names of its collections. `stored`: the names that the store has.
    `collection_of`: the collection of a scope. `embedder`: name of the index's embedder.
    """

    store: VectorStore
    collections: Collections
    family: str
    stored: Callable[[], Awaitable[list[str]]]
    collection_of: Callable[[Scope], str]
    embedder: str

    async def mark_stale(self) -> list[str]:
        """Mark the rows of lost collections as stale. Returns the names of the collections.

        A collection is lost if it is missing, or has less than half of the records that it had at
        the last check and that the ledger expects.

        Errors: StoreUnavailable. A collection that fails hides no other one while the store
        answers; its own rows stay as they are.
        """
        known = await self.collections.known(self.family)
        infos, failure = await self._infos({*known, *await self.stored()})
        known = {name: records for name, records in known.items() if name in infos}
        counts = {name: info.count for name, info in infos.items() if info is not None}
        small = [name for name, count in counts.items() if 2 * count < known.get(name, 0)]
        expected = await self._expected(small)
        lost = [name for name in known if name not in counts]
        lost += [name for name in small if 2 * counts[name] < expected[name]]
        if lost:
            log.warning("vectors_lost", collections=len(lost))
            await self.collections.mark_stale(lost, self.collection_of, embedder=self.embedder)
            # Nothing creates a missing collection whose rows are all deleted: it is not lost.
            to_write = await self._expected(lost, stale=True)
            await self.collections.forget(set(lost) - counts.keys() - to_write.keys())
        for name, count in counts.items():
            await self.collections.note(name, count)
        if failure is not None:
            raise failure
        return lost

    async def _infos(
        self, names: Iterable[str]
    ) -> tuple[dict[str, CollectionInfo | None], StoreUnavailable | None]:
        """Read each collection, None for a missing one. Returns those read, and the last failure.

        Errors: StoreUnavailable if the store does not answer at all.
        """
        infos: dict[str, CollectionInfo | None] = {}
        failure: StoreUnavailable | None = None
        for name in names:
            try:
                infos[name] = await self.store.col_info(name)
            except StoreUnavailable as error:
                await self.store.ping()
                failure = error
        return infos, failure

    async def _expected(self, names: Sequence[str], *, stale: bool = False) -> Counter[str]:
        """The number of records that the ledger expects in each of these collections."""
        if not names:
            return Counter()
        return await self.collections.expected(
            names, self.collection_of, embedder=self.embedder, stale=stale
        )
