"""Collections of the vector store that have been created: a missing one was lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.scope import Scope
from pipeline.ledger.tables import lanes, vector_collections
from pipeline.vector_index.sql import statement

# Lanes in one statement while a lost collection is marked to be written again.
LANES_AT_ONCE = 20_000


class Collections:
    """Names and sizes of the collections of one kind of vectors; `table` has their rows."""

    def __init__(self, engine: AsyncEngine, table: str) -> None:
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._table = table

    async def known(self, prefix: str) -> dict[str, int]:
        """Return the collections with this prefix, and the number of records at the last check."""
        columns = (vector_collections.c.name, vector_collections.c.records)
        query = select(*columns).where(func.starts_with(vector_collections.c.name, prefix))
        async with self._single.connect() as connection:
            rows = await connection.execute(query)
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
        async with self._single.connect() as connection:
            await connection.execute(query)

    async def forget(self, names: Iterable[str]) -> None:
        """Remove these collections from the list."""
        query = delete(vector_collections).where(vector_collections.c.name.in_(list(names)))
        async with self._single.connect() as connection:
            await connection.execute(query)

    async def mark_stale(
        self, names: Collection[str], collection_of: Callable[[Scope], str], *, embedder: str
    ) -> set[str]:
        """Mark the rows of these collections as stale.

        Returns the names of those that have rows.
        """
        marked: set[str] = set()
        after = UUID(int=0)
        async with self._single.connect() as connection:
            while True:
                query = select(lanes).where(lanes.c.id > after).order_by(lanes.c.id)
                rows = (await connection.execute(query.limit(LANES_AT_ONCE))).all()
                if not rows:
                    return marked
                after = rows[-1].id
                of = {
                    row.id: collection_of(
                        Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id)
                    )
                    for row in rows
                }
                values = {
                    "lane_ids": [lane_id for lane_id, name in of.items() if name in names],
                    "embedder": embedder,
                }
                changed = await connection.execute(
                    statement("mark_lanes_stale", self._table), values
                )
                marked |= {of[row.lane_id] for row in changed}
