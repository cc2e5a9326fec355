"""Tables whose rows are mirrored into the vector index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.fetching import execute
from pipeline.ledger.store import LedgerStore
from pipeline.ports import VectorRecord
from pipeline.vector_index.collections import Collections
from pipeline.vector_index.compactions import Compactions
from pipeline.vector_index.own_collections import OwnCollections, Position
from pipeline.vector_index.sql import statement


@dataclass(frozen=True, slots=True)
class Projection:
    """The state that the index should have of a memory or turn; not `wanted`: no vector.

    An empty `embedder` means that it is not embedded yet. `recorded`: the version that the index
    had when the row was read, or another number for a row that is marked as stale.
    """

    id: UUID
    scope: Scope
    text: str
    version: int
    wanted: bool
    vector: Vector = field(compare=False)  # an array has no single truth value
    embedder: str
    recorded: int = field(default=0, compare=False)


class VectorSource(LedgerStore, ABC):
    """One kind of text with vectors, as the index sees it.

    The statements here are on the common columns: id, lane_id, version, projected_version,
    embedding. `kind`: the prefix of its collections. `own`: the collections of its large scopes.
    """

    kind: ClassVar[str]
    table: ClassVar[str]

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.collections = Collections(engine, self.table, self.recorded)
        self.own = OwnCollections(engine)
        self.compactions = Compactions(engine)

    @abstractmethod
    async def count(self) -> int:
        """The number of vectors in a complete index."""

    @abstractmethod
    async def unprojected(
        self, ids: Iterable[UUID] | None = None, *, stale_for_s: float, limit: int
    ) -> list[Projection]:
        """Rows that are stale for `stale_for_s` seconds: all with these ids, or the oldest."""

    @abstractmethod
    async def unbuilt(self, after: UUID, *, limit: int) -> list[Projection]:
        """Rows that the index under construction lacks in this version, by id, after this one."""

    @abstractmethod
    async def following(self, after: UUID, *, limit: int) -> list[Projection]:
        """Rows that the index should have, of all owners, by id, after this one."""

    @abstractmethod
    async def mark_foreign_stale(self, embedder: str) -> None:
        """Mark all vectors of other models as stale, so that they are embedded again."""

    @abstractmethod
    async def foreign(self, index: str, embedder: str, *, limit: int) -> list[Projection]:
        """Stale rows with another model's vectors; none if `index` is not the live one."""

    @abstractmethod
    async def has(self, project_id: UUID, pins: Mapping[str, str], *, rows: int) -> bool:
        """Tell if there are `rows` rows with these entity ids."""

    @abstractmethod
    def pages(
        self, project_id: UUID, pins: Mapping[str, str], after: Position | None, *, limit: int
    ) -> AsyncIterator[tuple[list[Projection], Position]]:
        """Rows with these entity ids that the index should have, each page with its position.

        A page has about `limit` rows, or none.
        """

    async def fitted(self, done: Sequence[Projection], embedder: str) -> None:
        """Store vectors that this embedder computed, unless the text has changed."""
        values = {
            "ids": [row.id for row in done],
            "versions": [row.version for row in done],
            "vectors": [to_bytes(row.vector) for row in done],
            "embedder": embedder,
        }
        await execute(self._single, statement("replace_vectors", table=self.table), values)

    async def projected(self, done: Sequence[Projection], *, index: str) -> list[UUID]:
        """Record that the index has these versions.

        Rows that changed since they were read are marked as stale, and so is version 0, of which it
        is unknown what the index has. All rows stay as they are if another index is live by now.
        Returns ids erased since then: the index must delete them.
        """
        if not done:
            return []
        seen = {
            "ids": [row.id for row in done],
            "versions": [row.version for row in done],
            "recorded": [row.recorded for row in done],
            "lane_ids": [row.scope.lane_id for row in done],
            "index": index,
        }
        rows = await self._direct.rows(statement("record_projected", table=self.table), seen)
        return [row.id for row in rows]

    async def unknown(self, ids: Sequence[UUID]) -> list[UUID]:
        """Return the given ids that the ledger does not have."""
        rows = await self._direct.rows(
            statement("unknown_ids", table=self.table), {"ids": list(ids)}
        )
        return [row.id for row in rows]

    async def in_lane(self, ids: Sequence[UUID], lane_id: UUID) -> set[UUID]:
        """Return those of the ids that are in this lane."""
        values = {"ids": list(ids), "lane_id": lane_id}
        rows = await self._direct.rows(statement("ids_in_lane", table=self.table), values)
        return {row.id for row in rows}

    async def changed_since(self, rows: Sequence[Projection]) -> list[UUID]:
        """Return the ids of rows that are not in the index at this version, or were erased."""
        values = {
            "ids": [row.id for row in rows],
            "versions": [row.version for row in rows],
            "lane_ids": [row.scope.lane_id for row in rows],
        }
        changed = await self._direct.rows(statement("changed_since", table=self.table), values)
        return [row.id for row in changed]

    async def stale_vectors(
        self, where: Mapping[str, str], *, embedder: str, limit: int
    ) -> list[tuple[UUID, bytes]]:
        """Return ids and packed vectors of stale rows with these entity ids, newest first."""
        values = {**where, "embedder": embedder, "limit": limit}
        rows = await self._direct.rows(self.stale(*where), values)
        return [(row.id, row.embedding) for row in rows]

    @staticmethod
    @abstractmethod
    def recorded(lane_ids: Sequence[UUID], embedder: str, *, stale: bool) -> Select[Any]:
        """Query for the numbers of rows of lanes that the index should have.

        `stale`: with those that it lacks. Columns: `lane_id` and `rows`.
        """

    @staticmethod
    @abstractmethod
    def stale(*ids: str) -> Select[Any]:
        """Statement for `stale_vectors` by these entity ids; also `embedder` and `limit`."""


def as_record(projection: Projection) -> VectorRecord:
    """Return the record of a row in the store.

    Its payload has the ids to filter by and the version. No text is stored in the index.
    """
    ids = {**projection.scope.ids, "lane_id": projection.scope.lane_id}
    given = {name: str(value) for name, value in ids.items() if value is not None}
    return VectorRecord(projection.id, projection.vector, {**given, "version": projection.version})
