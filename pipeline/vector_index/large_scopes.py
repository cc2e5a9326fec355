"""Large scopes: each has a collection of its own, which is searched without a filter.

A search with a filter costs time linear in the records that pass it; without one it follows the
graph of the collection. A scope is here a set of entity ids, such as a user, or a user and an app.

    read of a scope ──► SERVED? ──► its own collection, without a filter
                            └─────► the buckets; and a request, if it has `rows` rows

The buckets stay complete, so an own collection can be deleted at any moment. It is complete, too:

    filler   commits state FILLING ──► reads a row ──► writes it ──► compares it with the ledger
    writer   reads a row ──► reads the states ──► writes it to its bucket and own collections

A writer that does not see the state has read its row before the filler reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from time import monotonic
from typing import NamedTuple
from uuid import UUID

import structlog

from pipeline.domain.errors import CollectionMissing, StoreUnavailable
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector
from pipeline.ports import CompactableStore, Embedder, VectorHit, VectorStore
from pipeline.vector_index.buckets import is_own, own_name
from pipeline.vector_index.names import family
from pipeline.vector_index.own_collections import OwnCollection, OwnState, pins_of
from pipeline.vector_index.projections import Projection, VectorSource, as_record

log = structlog.get_logger()

# Rows in one write of the filler.
A_PAGE = 200
# Seconds until the state of a scope without an own collection is read again.
ASK_EVERY_S, MOST_ASKED = 30.0, 10_000
# Own collections that one check counts.
CHECKED_AT_ONCE = 50

Write = Callable[[Sequence[Projection]], Awaitable[object]]
# Names of own collections and their states, by the id of a row.
Own = Mapping[UUID, Mapping[str, OwnState]]


class Served(NamedTuple):
    """Name of a complete own collection, and its number of records at the last check."""

    name: str
    records: int


@dataclass(frozen=True, slots=True)
class LargeScopes:
    """The own collections of an index, of memories or of turns.

    `index`: the name of the index in the ledger. `rows`: number of them from which a scope has one;
    0: none has. `read_at`: when the state of a scope without one was read.
    """

    store: VectorStore
    source: VectorSource
    embedder: Embedder
    index: str
    buckets: int
    rows: int
    read_at: dict[str, float] = field(default_factory=dict)

    async def served(self, project_id: UUID, pins: Mapping[str, str]) -> Served | None:
        """Return the own collection of a scope, if it has one that is complete.

        Has one made if the scope is large.
        """
        own = self.source.own
        if not self.rows or not pins:
            return None
        name = self._name(project_id, pins, self.embedder.name)
        if monotonic() - self.read_at.get(name, -ASK_EVERY_S) < ASK_EVERY_S:
            return None
        states = await own.states([name])
        if (own_state := states.get(name)) and own_state.served:
            return Served(name, own_state.records)
        if len(self.read_at) >= MOST_ASKED:
            self.read_at.clear()
        self.read_at[name] = monotonic()
        if not states and await self.source.has(project_id, pins, rows=self.rows):
            await own.request(name, project_id, pins, index=self.index)
        return None

    async def search(
        self, own: Served, vectors: Sequence[Vector], *, limit: int
    ) -> Sequence[Sequence[VectorHit]] | None:
        """Return the nearest records of an own collection; None if the store has lost it."""
        least = max(limit, self.store.reach(own.records))
        try:
            hit_lists = await self.store.search(own.name, vectors, limit=least, where={})
        except CollectionMissing:
            await self._forget([own.name])
            return None
        return [hits[:limit] for hits in hit_lists]

    async def collections_of(self, projections: Sequence[Projection]) -> Own:
        """Return the own collections of the scopes of these rows."""
        names = {row.id: list(self._names(row.scope, row.embedder)) for row in projections}
        states = await self.source.own.states({name for some in names.values() for name in some})
        if not states:
            return {}
        return {
            key: {name: states[name] for name in some if name in states}
            for key, some in names.items()
        }

    async def write(self, own: Own, projections: Sequence[Projection]) -> None:
        """Write these rows to their own collections, or delete them there."""
        for name, rows in _by_name(own, projections).items():
            wanted = [as_record(row) for row in rows if row.wanted]
            try:
                if wanted:
                    await self.store.insert(name, wanted)
                await self._delete(name, [row.id for row in rows if not row.wanted])
            except CollectionMissing:
                # One in state FILLING is about to be created: the filler reads these rows then.
                if own[rows[0].id][name].served:
                    await self._forget([name])

    async def drop(self, projections: Sequence[Projection]) -> None:
        """Delete these rows from their own collections."""
        for name, rows in _by_name(await self.collections_of(projections), projections).items():
            await self._drop(name, [row.id for row in rows])

    async def of_scope(self, scope: Scope, embedder: str) -> list[str]:
        """Return the own collections that can have a row of a scope."""
        return list(await self.source.own.states(list(self._names(scope, embedder))))

    async def drop_from(self, names: Sequence[str], ids: Sequence[UUID]) -> None:
        """Delete vectors from own collections."""
        for name in names:
            await self._drop(name, ids)

    async def fill(self, write: Write) -> int:
        """Fill the requested collections. Returns the number of rows written.

        `write`: writes stale rows to the whole index. Can be stopped at any point, and continues at
        the last page. A collection that fails stops no other one while the store answers. Errors:
        StoreUnavailable, ModelUnavailable.
        """
        own, count = self.source.own, 0
        failure: StoreUnavailable | None = None
        if not await own.filling(self._family):
            return 0
        async with own.alone() as is_alone:
            for collection in await own.filling(self._family) if is_alone else []:
                try:
                    count += await self._fill(collection, write)
                except CollectionMissing:
                    await self._forget([collection.name])
                except StoreUnavailable as error:
                    await self.store.ping()
                    failure = error
        if failure is not None:
            raise failure
        return count

    async def _fill(self, collection: OwnCollection, write: Write) -> int:
        """Fill one collection from its position on. Returns the number of rows written."""
        own, name, count = self.source.own, collection.name, 0
        position = collection.position
        if position is None:
            # Before the first row is read: a writer that finds no collection leaves its row to the
            # filler.
            await self.store.delete_col(name)  # remains of an interrupted start
            dimensions = await self.embedder.dimensions()
            await self.store.create_col(name, dimensions=dimensions, embedder=self.embedder.name)
        async for rows, after in self.source.pages(
            collection.project_id, collection.pins, position, limit=A_PAGE
        ):
            await self._write_page(name, rows, write)
            if not await own.advance(name, after, count=len(rows)):
                return count
            count, position = count + len(rows), after
        if position is None:
            await own.forget([name])
            await self.store.delete_col(name)
        else:
            await own.serve(name)
            log.info("own_collection_served", rows=collection.records + count)
        return count

    async def _write_page(self, name: str, rows: Sequence[Projection], write: Write) -> None:
        """Write rows to a collection; those that the buckets lack, to all of the index.

        Rows that changed while they were written become stale, because a newer state may have been
        written before this one.
        """
        ours = [row for row in rows if row.embedder == self.embedder.name]
        current = [row for row in ours if row.recorded == row.version]
        if stale := [row for row in ours if row.recorded != row.version]:
            await write(stale)
        if current:
            await self.store.insert(name, [as_record(row) for row in current])
            changed = set(await self.source.changed_since(current))
            erased = await self.source.projected(
                [row for row in current if row.id in changed], index=self.index
            )
            await self._drop(name, erased)

    async def check(self) -> None:
        """Delete own collections that lost records, or whose scopes have become small.

        Also collections that are in the store, but not in the list. Errors: StoreUnavailable.
        """
        own = self.source.own
        stored = [name for name in await self.store.list_cols() if self._is_mine(name)]
        for name in set(stored) - (await own.states(stored)).keys():
            await self.store.delete_col(name)
            await self.source.compactions.forget(name)
        for collection in await own.due(self._family, limit=CHECKED_AT_ONCE):
            info = await self.store.col_info(collection.name)
            least = max(collection.records, self.rows)
            if info is None or not self.rows or 2 * info.count < least:
                await self._forget([collection.name])
                await self.store.delete_col(collection.name)
            else:
                await own.checked(collection.name, info.count)

    async def wipe(self) -> None:
        """Delete all own collections of this index. Errors: StoreUnavailable."""
        stored = [name for name in await self.store.list_cols() if self._is_mine(name)]
        names = [name for name in stored if name.startswith(self._family)]
        await self._forget(names)
        for name in names:
            await self.store.delete_col(name)

    async def _forget(self, names: Sequence[str]) -> None:
        if not names:
            return
        log.warning("own_collections_deleted", collections=len(names))
        await self.source.own.forget(names)

    async def _drop(self, name: str, ids: Sequence[UUID]) -> None:
        with suppress(CollectionMissing):
            await self._delete(name, ids)

    async def _delete(self, name: str, ids: Sequence[UUID]) -> None:
        await self.store.delete(name, ids)
        if ids and isinstance(self.store, CompactableStore):
            await self.source.compactions.count(name, len(ids))

    @property
    def _family(self) -> str:
        return family(self.source.kind, self.embedder.name, self.buckets) + "-"

    def _is_mine(self, name: str) -> bool:
        return name.startswith(f"{self.source.kind}-") and is_own(name)

    def _name(self, project_id: UUID, pins: Mapping[str, str], embedder: str) -> str:
        return own_name(self.source.kind, embedder, self.buckets, project_id=project_id, pins=pins)

    def _names(self, scope: Scope, embedder: str) -> Iterator[str]:
        """The names of the own collections that can have a row of this scope."""
        pins = pins_of(scope)
        for number in range(1, len(pins) + 1):
            for some in combinations(pins.items(), number):
                yield self._name(scope.project_id, dict(some), embedder)


def _by_name(own: Own, projections: Sequence[Projection]) -> dict[str, list[Projection]]:
    rows: dict[str, list[Projection]] = defaultdict(list)
    for row in projections:
        for name in own.get(row.id, ()):
            rows[name].append(row)
    return rows
