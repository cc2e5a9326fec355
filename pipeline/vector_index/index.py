"""Vector index: the vectors of memories, or of turns, in a VectorStore.

Owners are spread over a fixed number of collections, see pipeline/vector_index/buckets.

The index is written behind the ledger (write-behind): `projected_version` in the ledger is the
version that it holds. Stale rows are compared straight from the ledger, so a memory is found from
its commit on, and an index hit is only a hint. No event waits for the vectors of its turns: until
they are made, a turn is found by its words.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

import numpy as np
import structlog

from pipeline import telemetry
from pipeline.domain.errors import (
    CollectionMissing,
    ModelRejected,
    ModelUnavailable,
    StoreUnavailable,
)
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ports import CompactableStore, Embedder, VectorHit, VectorStore
from pipeline.vector_index.buckets import collection_name, is_bucket, may_hold
from pipeline.vector_index.large_scopes import LargeScopes, Own, Served
from pipeline.vector_index.lost_vectors import LostVectors
from pipeline.vector_index.names import KINDS, family, index_name
from pipeline.vector_index.own_collections import pins_of
from pipeline.vector_index.projections import Projection, VectorSource, as_record

log = structlog.get_logger()


# Ids in one call to the store.
AT_ONCE = 500
# Ids in one write of the projector: reading, packing and sending them blocks the event loop for
# 3 ms; 1,400 of one busy scope took 75 ms.
A_PIECE = 50
# Maximum number of stale vectors compared from the ledger: 2,000 of 384 dimensions have 3 MB and
# take 4 ms.
MOST_STALE = 2_000
# Version of a row of which it is unknown what the store has.
UNKNOWN = 0
# Maximum number of writes that are kept until the ledger answers.
MOST_UNRECORDED = 20_000
# Hits of an own collection that are read for each one wanted: some are of narrower scopes.
NARROWER = 3
LOST = "A collection of the index is gone; it is being written again."


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class SoughtIds:
    """Ids to look up in the store. `owner_hashes`: those of their owners; None for any owner."""

    ids: Sequence[UUID]
    owner_hashes: Sequence[int] | None = None

    def may_be_in(self, collection: str) -> bool:
        """Tell if a collection can have one of the ids."""
        return self.owner_hashes is None or may_hold(collection, self.owner_hashes)


@dataclass(frozen=True, slots=True)
class NearestHits:
    """The nearest records. `complete`: False if there were too many stale rows to compare all."""

    hits: Sequence[VectorHit]
    complete: bool


class VectorIndex:
    """Vectors of one source in a store.

    All writes go through `write` and `catch_up`, all reads through `nearest…`. `own_rows`: number
    of memories from which a scope has a collection of its own; 0: none has.
    """

    def __init__(
        self,
        store: VectorStore,
        source: VectorSource,
        embedder: Embedder,
        *,
        buckets: int,
        own_rows: int = 0,
    ) -> None:
        """`source`: the table with the rows. `buckets`: number of collections for all owners."""
        self._store = store
        self.source = source
        self._embedder = embedder
        self._buckets, self._own_rows = buckets, own_rows
        self.large = LargeScopes(
            store, source, embedder, index=self.name, buckets=buckets, rows=own_rows
        )
        self._created: set[str] = set()
        # During a repair, which is run because collections may be lost: that needs no warning.
        self.mending = False
        # Writes whose end is not recorded yet, because the ledger did not answer.
        self._unrecorded: list[Projection] = []

    @property
    def name(self) -> str:
        """The name of the index in the ledger."""
        return index_name(self._store.name, self._embedder.name, self._buckets)

    async def catch_up(
        self, ids: Sequence[UUID] | None = None, *, stale_for_s: float = 0.0, limit: int = 500
    ) -> int:
        """Write the stale vectors of these, or any that are stale for `stale_for_s`.

        Returns the number written. Idempotent: an upsert of the ledger's newest state, or a delete.
        Errors: StoreUnavailable, ModelUnavailable.
        """
        stale = await self.source.unprojected(ids, stale_for_s=stale_for_s, limit=limit)
        return await self._write_stale(stale)

    async def write(self, projections: Sequence[Projection]) -> int:
        """Write these rows and record their versions. Returns the number written.

        Rows of collections that are being compacted stay stale. Rows erased in the meantime are
        deleted again. Errors: StoreUnavailable; while the store answers, a collection that fails
        stops no other one. The versions of collections that were written are recorded, and rows
        that the store may have written, or may write late, are marked as stale.
        """
        written, self._unrecorded = self._unrecorded, []
        own = await self.large.collections_of(projections)
        projections = await self._not_paused(projections, own)
        failure: StoreUnavailable | None = None
        for name, some in self._by_collection(projections):
            try:
                await self._write(name, some)
                await self.large.write(own, some)
            except StoreUnavailable as error:
                failure = error
                telemetry.vector_writes_failed.inc()
                written += [replace(row, version=UNKNOWN) for row in some]
                if not await self.answers():
                    break
            else:
                written += some
        # One statement for all collections: it costs more than most of their requests.
        erased = set(await self._record(written))
        gone = [row for row in written if row.id in erased]
        for name, some in self._by_collection(gone):
            await self._drop(name, [row.id for row in some])
        await self.large.drop(gone)
        if failure is not None:
            raise failure
        return len(projections)

    async def answers(self) -> bool:
        """Tell if the store answers, so that a failed operation concerns its collection alone."""
        try:
            await self._store.ping()
        except StoreUnavailable:
            return False
        return True

    async def _not_paused(self, projections: Sequence[Projection], own: Own) -> list[Projection]:
        """Return the rows none of whose collections is being compacted."""
        names = {
            row.id: {self._of(row.scope, row.embedder), *own.get(row.id, ())} for row in projections
        }
        paused = await self._paused(set().union(*names.values()))
        return [row for row in projections if paused.isdisjoint(names[row.id])]

    async def _paused(self, names: set[str]) -> set[str]:
        """Return the collections whose writers have to wait."""
        if not isinstance(self._store, CompactableStore):
            return set()
        return await self.source.compactions.paused(names)

    async def _record(self, written: Iterable[Projection]) -> list[UUID]:
        """Record the versions of rows. Returns those erased since they were read.

        If the ledger does not answer, the next call marks them as stale: it may have a later
        version on record than the one that the store has.
        """
        unknown_last = sorted(written, key=lambda row: row.version == UNKNOWN)
        by_id = {row.id: row for row in unknown_last}
        try:
            return await self.source.projected(list(by_id.values()), index=self.name)
        except (LedgerUnavailable, asyncio.CancelledError):
            rows = [*self._unrecorded, *by_id.values()][:MOST_UNRECORDED]
            self._unrecorded = [replace(row, version=UNKNOWN) for row in rows]
            raise

    async def drop_unknown(self, expected: Mapping[str, int]) -> int:
        """Delete records whose ids the ledger does not know. Returns their number.

        `expected`: the number the ledger expects in each collection; only those with more are read.
        Errors: StoreUnavailable.
        """
        dropped = 0
        for name in await self._stored():
            info = await self._store.col_info(name)
            if info is None or info.count <= expected.get(name, 0):
                continue
            records = await self._store.list(name, where={}, limit=info.count)
            for some in _shares([record.id for record in records], AT_ONCE):
                unknown = await self.source.unknown(some)
                await self._drop(name, unknown)
                dropped += len(unknown)
        return dropped

    def counted(self, projections: Iterable[Projection]) -> Counter[str]:
        """The number of these in each collection."""
        return Counter(
            self._of(projection.scope, projection.embedder) for projection in projections
        )

    async def lacking(self, projections: Sequence[Projection]) -> list[Projection]:
        """Return those that the store lacks or has in another state. Errors: StoreUnavailable."""
        lacking: list[Projection] = []
        for name, some in self._by_collection(projections):
            try:
                differing = await self._store.differing(name, [as_record(row) for row in some])
            except CollectionMissing:
                differing = [row.id for row in some]
            ids = set(differing)
            lacking += [row for row in some if row.id in ids]
        return lacking

    async def wipe(self) -> None:
        """Drop all collections. Errors: StoreUnavailable."""
        names = await self._stored()
        for name in names:
            await self._store.delete_col(name)
        await self.source.collections.forget(names)
        await self.large.wipe()

    async def heal(self) -> list[str]:
        """Mark the rows of lost collections as stale. Returns the names of the collections.

        Errors: as `LostVectors.mark_stale`.
        """
        lost = LostVectors(
            self._store,
            self.source.collections,
            self._family,
            self._stored,
            lambda scope: self._of(scope, self._embedder.name),
            self._embedder.name,
        )
        return await lost.mark_stale()

    async def fill_large(self) -> int:
        """Fill the requested own collections of large scopes. Returns the number of rows written.

        Errors: StoreUnavailable, ModelUnavailable.
        """
        return await self.large.fill(self._write_stale)

    async def _write_stale(self, stale: Sequence[Projection]) -> int:
        return await self.write(await self._embedded(stale))

    async def fitting(self, projections: Sequence[Projection]) -> list[Projection]:
        """Return the same rows with vectors of this index's model.

        A row whose text the model refuses is not wanted. Errors: ModelUnavailable.
        """
        name = self._embedder.name
        foreign = [projection for projection in projections if projection.embedder != name]
        fitted = {row.id: row for row in await self._fitted(foreign)}
        return [fitted.get(projection.id, projection) for projection in projections]

    async def _fitted(self, rows: Sequence[Projection]) -> list[Projection]:
        """Embed these rows; halve them to find the texts that the model refuses."""
        name = self._embedder.name
        try:
            vectors = await self._embedder.embed([row.text for row in rows])
        except ModelRejected:
            if len(rows) == 1:
                return [replace(rows[0], wanted=False, embedder=name)]
            half = len(rows) // 2
            return [*await self._fitted(rows[:half]), *await self._fitted(rows[half:])]
        return [
            replace(row, vector=vector, embedder=name)
            for row, vector in zip(rows, vectors, strict=True)
        ]

    async def refit(self, *, limit: int = AT_ONCE) -> int:
        """Embed stale rows with another model's vectors again. Returns their number."""
        foreign = await self.source.foreign(self.name, self._embedder.name, limit=limit)
        if foreign:
            made = await self.fitting(foreign)
            await self.source.fitted([row for row in made if row.wanted], self._embedder.name)
            await self.write([row for row in made if not row.wanted])
        return len(foreign)

    async def _embedded(self, projections: Sequence[Projection]) -> list[Projection]:
        """Embed the rows that have no vector, and store their vectors in the ledger.

        Likewise those with a vector of another length, which no store accepts. Texts the model
        rejects get no vector.
        """
        odd = await self._odd(projections)
        bare = [
            replace(projection, embedder="")
            for projection in projections
            if projection.wanted and (not projection.embedder or projection.id in odd)
        ]
        if not bare:
            return list(projections)
        made = await self.fitting(bare)
        await self.source.fitted([row for row in made if row.wanted], self._embedder.name)
        by_id = {projection.id: projection for projection in made}
        return [by_id.get(projection.id, projection) for projection in projections]

    async def _odd(self, projections: Sequence[Projection]) -> set[UUID]:
        """Return the ids of rows with a vector of another length than those of this model.

        The set is empty while the model does not tell the length.
        """
        ours = [row for row in projections if row.embedder == self._embedder.name]
        if not ours:
            return set()
        try:
            length = await self._embedder.dimensions()
        except (ModelUnavailable, ModelRejected):
            return set()
        return {row.id for row in ours if len(row.vector) != length}

    def _by_collection(
        self, projections: Sequence[Projection]
    ) -> Iterable[tuple[str, list[Projection]]]:
        by_collection: dict[str, list[Projection]] = defaultdict(list)
        for projection in projections:
            # The collection of the row's own model, which may differ from the model of this reader.
            name = self._of(projection.scope, projection.embedder)
            by_collection[name].append(projection)
        return by_collection.items()

    async def forget(self, scope: Scope, embedder: str, ids: Sequence[UUID]) -> None:
        """Delete vectors of a scope, before the ledger deletes its rows.

        Errors: StoreUnavailable, also while a collection of the scope is compacted.
        """
        bucket, own = self._of(scope, embedder), await self.large.of_scope(scope, embedder)
        if await self._paused({bucket, *own}):
            raise StoreUnavailable("A collection of the scope is being compacted.")
        await self._drop(bucket, ids)
        await self.large.drop_from(own, ids)

    def read_with(self, embedder: Embedder) -> VectorIndex:
        """The same index for reads with another model."""
        return VectorIndex(
            self._store, self.source, embedder, buckets=self._buckets, own_rows=self._own_rows
        )

    def of(self, source: VectorSource) -> VectorIndex:
        """The same index for another source."""
        return VectorIndex(
            self._store, source, self._embedder, buckets=self._buckets, own_rows=self._own_rows
        )

    async def holding(self, *sought: SoughtIds) -> dict[str, list[UUID]]:
        """Return the ids that the store has, memories and turns, by collection.

        Searches the collections of all models, and of all buckets in which the owners can be.
        Errors: StoreUnavailable.
        """
        by_collection: dict[str, list[UUID]] = defaultdict(list)
        wanted = [some for some in sought if some.ids]
        ours = tuple(f"{kind}-" for kind in KINDS)
        names = await self._store.list_cols() if wanted else []
        for name in (name for name in names if name.startswith(ours)):
            ids = [key for some in wanted if some.may_be_in(name) for key in some.ids]
            for some in _shares(ids, AT_ONCE):
                with contextlib.suppress(CollectionMissing):  # deleted since it was listed
                    records = await self._store.get(name, some)
                    by_collection[name] += [record.id for record in records]
        return {name: stored for name, stored in by_collection.items() if stored}

    async def drop(self, by_collection: Mapping[str, Sequence[UUID]]) -> None:
        """Delete the result of `holding` from the store. Errors: StoreUnavailable."""
        for name, ids in by_collection.items():
            await self._drop(name, ids)

    async def nearest(
        self, where: Mapping[str, str], vector: Vector, *, limit: int, stale: bool = True
    ) -> NearestHits:
        """Return the nearest records whose ids equal `where` (project_id and any scope ids).

        `stale`: compare the ledger's stale rows, too; False if there were none a moment ago.
        Errors: StoreUnavailable.
        """
        own = await self._own(where)
        names = [] if own else await self._collections(where)
        # Read stale rows first: a row written in between is then found twice instead of missed.
        [late] = await self._stale(where, [vector]) if stale else [{}]
        hit_lists = await self.large.search(own, [vector], limit=limit) if own else None
        if hit_lists is None:
            names = names or await self._collections(where)
            hit_lists = await asyncio.gather(
                *(self._search(name, vector, limit=limit, where=where) for name in names)
            )
        hits = {hit.id: hit for hits in hit_lists for hit in hits}
        hits |= {key: VectorHit(key, cosine) for key, cosine in late.items()}
        best = sorted(hits.values(), key=lambda hit: (-hit.similarity, hit.id))[:limit]
        return NearestHits(best, complete=len(late) < MOST_STALE)

    async def nearest_in_lane(
        self, scope: Scope, vectors: Sequence[Vector], *, limit: int, least: int = 0
    ) -> dict[UUID, float]:
        """Return the `limit` nearest memories of this scope for each vector, with their cosine.

        `least`: minimum number of memories in the scope. Errors: StoreUnavailable, also if the
        collection is missing or incomplete: an empty result must mean an empty scope.
        """
        where = {"lane_id": str(scope.lane_id)}
        stale = await self._stale(where, vectors)
        hit_lists = await self._near_in_own(scope, vectors, limit=limit)
        try:
            hit_lists = hit_lists or await self._store.search(
                self.collection(scope), vectors, limit=limit, where=where
            )
        except CollectionMissing as error:
            raise StoreUnavailable("The index is gone; it is being written again.") from error
        indexed = ({hit.id: hit.similarity for hit in hits} for hits in hit_lists)
        near = [old | new for old, new in zip(indexed, stale, strict=True)]
        if any(
            len(cosines) < min(limit, least) or len(new) >= MOST_STALE
            for cosines, new in zip(near, stale, strict=True)
        ):
            raise StoreUnavailable("The index holds too little of this scope; it is being written.")
        return nearest_of(near, each=limit)

    async def _own(self, where: Mapping[str, str]) -> Served | None:
        """Return the own collection of the scope with these ids, if it is complete."""
        pins = {key: value for key, value in where.items() if key != "project_id"}
        return await self.large.served(UUID(where["project_id"]), pins)

    async def _near_in_own(
        self, scope: Scope, vectors: Sequence[Vector], *, limit: int
    ) -> Sequence[Sequence[VectorHit]] | None:
        """Return the nearest memories of a scope that has an own collection.

        None if the scope has none, or if most of its nearest are of narrower scopes.
        """
        own = await self.large.served(scope.project_id, pins_of(scope))
        near = await self.large.search(own, vectors, limit=NARROWER * limit) if own else None
        if near is None:
            return None
        ids = {hit.id for hits in near for hit in hits}
        here = await self.source.in_lane(list(ids), scope.lane_id)
        in_lane = [[hit for hit in hits if hit.id in here][:limit] for hits in near]
        return in_lane if all(len(hits) == limit for hits in in_lane) else None

    def collection(self, scope: Scope) -> str:
        """Return the collection of a scope's memories; an owner's memories are all in one."""
        return self._of(scope, self._embedder.name)

    def _of(self, scope: Scope, embedder: str) -> str:
        return self._collection(scope.project_id, scope.owner, embedder)

    def _collection(self, project_id: UUID, owner: str, embedder: str) -> str:
        return collection_name(
            self.source.kind, embedder, self._buckets, project_id=project_id, owner=owner
        )

    async def _collections(self, where: Mapping[str, str]) -> list[str]:
        """Return the owner's collection, or, without a user in `where`, all of this index."""
        if "user_id" in where:
            project_id, owner = UUID(where["project_id"]), where["user_id"]
            return [self._collection(project_id, owner, self._embedder.name)]
        stored = await self._stored()
        if not (await self.source.collections.known(self._family)).keys() <= set(stored):
            raise StoreUnavailable(LOST)
        return stored

    @property
    def _family(self) -> str:
        return family(self.source.kind, self._embedder.name, self._buckets) + "-"

    async def _stored(self) -> list[str]:
        names = await self._store.list_cols()
        return sorted(n for n in names if n.startswith(self._family) and is_bucket(n))

    async def _stale(
        self, where: Mapping[str, str], vectors: Sequence[Vector]
    ) -> list[dict[UUID, float]]:
        """Cosines of the stale rows with each of the vectors, computed here."""
        stale = await self.source.stale_vectors(
            where, embedder=self._embedder.name, limit=MOST_STALE
        )
        return compared(stale, vectors)

    async def _search(
        self, name: str, vector: Vector, *, limit: int, where: Mapping[str, str]
    ) -> list[VectorHit]:
        try:
            hit_lists = await self._store.search(name, [vector], limit=limit, where=where)
        except CollectionMissing:
            if await self.source.collections.known(name):
                raise StoreUnavailable(LOST) from None
            return []
        return [hit for hits in hit_lists for hit in hits]

    async def _write(self, name: str, projections: Sequence[Projection]) -> None:
        wanted = [projection for projection in projections if projection.wanted]
        if wanted:
            await self._put(name, wanted)
        await self._drop(
            name, [projection.id for projection in projections if not projection.wanted]
        )

    async def _put(self, name: str, projections: Sequence[Projection]) -> None:
        """Upsert records; create the collection first if it is missing."""
        records = [as_record(projection) for projection in projections]
        if name not in self._created:
            await self._create(name, projections[0])
        try:
            await self._store.insert(name, records)
        except CollectionMissing:
            await self._create(name, projections[0])
            await self._store.insert(name, records)

    async def _create(self, name: str, like: Projection) -> None:
        """Create a collection.

        If the ledger knows it, it was lost: mark its rows as stale first.
        """
        collections, embedder = self.source.collections, like.embedder
        if await collections.known(name) and await self._store.col_info(name) is None:
            if not self.mending:
                log.warning("vectors_lost", collections=1)
            await collections.mark_stale(
                {name}, lambda scope: self._of(scope, embedder), embedder=embedder
            )
        await self._store.create_col(name, dimensions=len(like.vector), embedder=embedder)
        await collections.note(name)
        self._created.add(name)

    async def _drop(self, name: str, ids: Sequence[UUID]) -> None:
        with contextlib.suppress(CollectionMissing):
            for some in _shares(ids, AT_ONCE):
                await self._store.delete(name, some)
        if ids and isinstance(self._store, CompactableStore):
            await self.source.compactions.count(name, len(ids))


def compared(
    packed: Sequence[tuple[Key, bytes]], vectors: Sequence[Vector]
) -> list[dict[Key, float]]:
    """Return the cosines of all stored vectors with each query vector."""
    if not packed or not vectors:
        return [{} for _ in vectors]
    keys = [key for key, _ in packed]
    stored = np.frombuffer(b"".join(vector for _, vector in packed), np.float32)
    cosines = np.asarray(vectors, np.float32) @ stored.reshape(len(packed), -1).T
    return [dict(zip(keys, row, strict=True)) for row in cosines.tolist()]


def nearest_of(cosines: Iterable[Mapping[UUID, float]], *, each: int) -> dict[UUID, float]:
    """Return the `each` nearest keys of every query vector, with their best cosine."""
    best: dict[UUID, float] = {}
    for near in cosines:
        for key in sorted(near, key=near.__getitem__, reverse=True)[:each]:
            best[key] = max(near[key], best.get(key, -1.0))
    return best


def _shares(ids: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
