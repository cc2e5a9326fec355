"""Own collections: scopes whose vectors have a collection beside the buckets, and their states.

    a read of a large scope ──► FILLING ──► SERVED ──► deleted: lost, or far smaller than before

A scope is here a set of entity ids, such as a user, or a user with an agent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.scope import Scope
from pipeline.ledger.locks import advisory_lock
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.vector_index.sql import statement

SERVED = "SERVED"
# Key of an advisory lock; no other lock uses it.
FILL_LOCK = 0x6F776E63
FILLED_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the order in which a collection is filled: the last row that was written.

    Memories are in the order of (`at`, `id`), turns in that of (`id` of the lane, `seq`).
    """

    id: UUID
    at: datetime | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class OwnCollection:
    """A collection of the vectors of one scope.

    `pins`: its entity ids. `position`: how far it is filled; None before the first row. `records`:
    number of records at the last check.
    """

    name: str
    project_id: UUID
    pins: Mapping[str, str]
    position: Position | None
    records: int


@dataclass(frozen=True, slots=True)
class OwnState:
    """State of a collection, FILLING or SERVED, and its number of records at the last check."""

    state: str
    records: int

    @property
    def served(self) -> bool:
        """True if the collection is complete."""
        return self.state == SERVED


class OwnCollections(LedgerStore):
    """States of the own collections of one kind of vectors."""

    def alone(self) -> AbstractAsyncContextManager[bool]:
        """Let one process at a time fill collections. False if another one does."""
        return advisory_lock(self._engine, FILL_LOCK, wait=False)

    async def states(self, names: Collection[str]) -> dict[str, OwnState]:
        """Return the state of each of these collections, smallest first."""
        if not names:
            return {}
        rows = await self._direct.rows(statement("own_states"), {"names": list(names)})
        return {row.name: OwnState(row.state, row.records) for row in rows}

    async def size(self, project_id: UUID, pins: Mapping[str, str]) -> int:
        """Return the smallest number of memories that one of these ids has."""
        values = {
            "project_id": project_id,
            "kinds": [name.removesuffix("_id") for name in pins],
            "ids": list(pins.values()),
        }
        [row] = await self._direct.rows(statement("own_size"), values)
        return int(row.amount or 0)

    async def request(
        self, name: str, project_id: UUID, pins: Mapping[str, str], *, index: str
    ) -> None:
        """Have a collection made for this scope, unless there is one or `index` is not live."""
        ids = {key: pins.get(key) for key in ENTITY_IDS}
        values = {"name": name, "project_id": project_id, "index": index} | ids
        await self._direct.rows(statement("own_request"), values)

    async def filling(self, prefix: str) -> list[OwnCollection]:
        """Return collections to be filled, the oldest request first."""
        values = {"prefix": prefix, "limit": FILLED_AT_ONCE}
        rows = await self._direct.rows(statement("own_filling"), values)
        return [_as_collection(row) for row in rows]

    async def advance(self, name: str, position: Position, *, count: int) -> bool:
        """Record how far a collection is filled. False if it was deleted or is SERVED."""
        values = {"name": name, "count": count} | columns_of(position, "at", "id", "seq")
        return bool(await self._direct.rows(statement("own_advance"), values))

    async def serve(self, name: str) -> None:
        """Record that a collection is complete."""
        await self._direct.rows(statement("own_serve"), {"name": name})

    async def due(self, prefix: str, *, limit: int) -> list[OwnCollection]:
        """Return SERVED collections to check, the one with the oldest check first."""
        rows = await self._direct.rows(statement("own_due"), {"prefix": prefix, "limit": limit})
        return [_as_collection(row) for row in rows]

    async def checked(self, name: str, records: int) -> None:
        """Record the number of records of a collection."""
        await self._direct.rows(statement("own_checked"), {"name": name, "records": records})

    async def forget(self, names: Collection[str]) -> None:
        """Remove these collections from the list: reads use the buckets again."""
        if names:
            await self._direct.rows(statement("own_forget"), {"names": list(names)})


def _as_collection(row: Row[Any]) -> OwnCollection:
    key = row.filled_id
    position = None if key is None else Position(key, row.filled_at, row.filled_seq)
    return value_of(OwnCollection, row, pins=pins_of(row), position=position)


def pins_of(scope: Scope | Row[Any]) -> dict[str, str]:
    """The entity ids of a scope, or of a row with their columns."""
    return {name: value for name in ENTITY_IDS if (value := getattr(scope, name)) is not None}
