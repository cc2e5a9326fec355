"""The VectorStore port in memory, for tests. It keeps all promises of the port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from pipeline.domain.errors import CollectionMissing, InvalidInput
from pipeline.domain.vectors import Vector
from pipeline.ports import CollectionInfo, VectorHit, VectorRecord

# Inside the class the method `list` hides the built-in type.
Records = list[VectorRecord]
Names = list[str]
Ids = list[UUID]
Hits = list[list[VectorHit]]


class InMemoryVectors:
    """The VectorStore port in dictionaries; a search compares all matching records."""

    name = "memory"

    def __init__(self) -> None:
        self._records: dict[str, dict[UUID, VectorRecord]] = {}
        self._info: dict[str, tuple[int, str]] = {}

    def reach(self, records: int) -> int:
        return 1

    async def ping(self) -> None: ...

    async def close(self) -> None: ...

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        built_with = self._info.setdefault(name, (dimensions, embedder))[1]
        if built_with != embedder:
            raise InvalidInput(f"Collection {name} holds vectors of {built_with}.")
        self._records.setdefault(name, {})

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        self._of(name).update({record.id: record for record in records})

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Hits:
        matching = self._matching(name, where)
        return [_nearest(vector, matching)[:limit] for vector in vectors]

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None:
        await self.insert(name, records)

    async def delete(self, name: str, ids: Sequence[UUID]) -> None:
        for key in ids:
            self._of(name).pop(key, None)

    async def get(self, name: str, ids: Sequence[UUID]) -> Records:
        records = self._of(name)
        return [records[key] for key in ids if key in records]

    async def list_cols(self) -> Names:
        return list(self._records)

    async def delete_col(self, name: str) -> None:
        self._records.pop(name, None)
        self._info.pop(name, None)

    async def col_info(self, name: str) -> CollectionInfo | None:
        if name not in self._info:
            return None
        return CollectionInfo(name, len(self._records[name]), *self._info[name])

    async def differing(self, name: str, records: Sequence[VectorRecord]) -> Ids:
        stored = {row.id: row.payload for row in await self.get(name, [row.id for row in records])}
        return [row.id for row in records if stored.get(row.id) != row.payload]

    async def list(self, name: str, *, where: Mapping[str, str | int], limit: int) -> Records:
        return self._matching(name, where)[:limit]

    async def mirror(self, name: str, copy: str) -> None:
        here = self._of(name)
        self._info[copy] = self._info[name]
        self._records[copy] = dict(here)

    async def replace(self, name: str, copy: str, *, former: str) -> None:
        self._of(name)
        self._records[name] = self._records.pop(copy)
        self._info[name] = self._info.pop(copy)

    async def reset(self) -> None:
        self._records.clear()
        self._info.clear()

    def _of(self, name: str) -> dict[UUID, VectorRecord]:
        try:
            return self._records[name]
        except KeyError:
            raise CollectionMissing(f"There is no collection {name}.") from None

    def _matching(self, name: str, where: Mapping[str, str | int]) -> Records:
        return [
            record
            for record in self._of(name).values()
            if all(record.payload.get(key) == value for key, value in where.items())
        ]


def _nearest(vector: Vector, records: Records) -> list[VectorHit]:
    hits = [VectorHit(record.id, cosine(vector, record.vector)) for record in records]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.id))


def cosine(a: Vector, b: Vector) -> float:
    """Cosine of the angle between two vectors; 0 if one of them is zero."""
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.dot(a, b)) / lengths if lengths else 0.0
