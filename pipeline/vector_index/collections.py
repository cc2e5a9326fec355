"""Collections of the vector store that have been created: a missing one was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Select, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.scope import Scope
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import lanes, vector_collections
from pipeline.vector_index.sql import statement

# Lanes in one statement about a lost collection.
LANES_AT_ONCE = 20_000


class Recorded(Protocol):
    """The query of `VectorSource.recorded`."""

    def __call__(self, lane_ids: list[UUID], embedder: str, *, stale: bool) -> Select[Any]: ...


class Collections(LedgerStore):
    """Names and sizes of the collections of one kind of vectors."""

    def __init__(self, engine: AsyncEngine, table: str, recorded: Recorded) -> None:
        """`table`: the table with their rows; `recorded`: the query of `VectorSource.recorded`."""
        super().__init__(engine)
        self._recorded = recorded
        self._table = table

    async def known(self, prefix: str) -> dict[str, int]:
        """Return the collections with this prefix, and the number of records at the last check."""
        columns = (vector_collections.c.name, vector_collections.c.records)
        query = select(*columns).where(func.starts_with(vector_collections.c.name, prefix))
        rows = await fetch(self._single, query)
        return {row.name: row.records for row in rows}

    async def note(self, name: str, records: int | None = None) -> None:
        """Record that a collection exists, with its number of records; None leaves the number."""
        row = insert(vector_collections).values(name=name, records=records or 0)
        key = ["name"]
        query = (
            row.on_conflict_do_nothing(index_elements=key)
            if records is None
            else row.on_conflict_do_update(index_elements=key, set_={"records": records})
        )
        await execute(self._single, query)

    async def forget(self, names: Iterable[str]) -> None:
        """Remove these collections from the list."""
        query = delete(vector_collections).where(vector_collections.c.name.in_(list(names)))
        await execute(self._single, query)

    async def mark_stale(
        self, names: Collection[str], collection_of: Callable[[Scope], str], *, embedder: str
    ) -> None:
        """Mark the rows of these collections as stale."""
        async with self._single.connect() as connection:
            async for of in _lanes_of(connection, names, collection_of):
                values = {"lane_ids": list(of), "embedder": embedder}
                await connection.execute(statement("mark_lanes_stale", table=self._table), values)

    async def expected(
        self,
        names: Collection[str],
        collection_of: Callable[[Scope], str],
        *,
        embedder: str,
        stale: bool = False,
    ) -> Counter[str]:
        """Return the number of rows that each of these collections should have.

        `stale`: with those that it lacks. Reads all lanes, and the rows of those in the
        collections.
        """
        numbers = Counter[str]()
        async with self._single.connect() as connection:
            async for of in _lanes_of(connection, names, collection_of):
                for row in await connection.execute(
                    self._recorded(list(of), embedder, stale=stale)
                ):
                    numbers[of[row.lane_id]] += row.rows
        return numbers


async def _lanes_of(
    connection: AsyncConnection, names: Collection[str], collection_of: Callable[[Scope], str]
) -> AsyncIterator[dict[UUID, str]]:
    """Yield the lanes of these collections with their collections, some at a time."""
    after = UUID(int=0)
    while True:
        query = select(lanes).where(lanes.c.id > after).order_by(lanes.c.id)
        rows = (await connection.execute(query.limit(LANES_AT_ONCE))).all()
        if not rows:
            return
        after = rows[-1].id
        of = {row.id: collection_of(Scope.of(row)) for row in rows}
        yield {lane_id: name for lane_id, name in of.items() if name in names}
