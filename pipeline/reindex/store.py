"""Vector indexes: the live one, and the one that is built to replace it.

    BUILDING ──► WHOLE ──► LIVE      at most one of each; the next LIVE index replaces the old one

`rebuilt` records the versions in the index under construction; `memories.projected_version` those
in the live one. So a build that was killed continues where it stopped, and rows changed during a
build are stale in both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, InvalidInput
from pipeline.domain.vectors import to_bytes
from pipeline.ledger.fetching import execute, fetch_value
from pipeline.ledger.locks import advisory_lock
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import own_collections, rebuilt, vector_indexes
from pipeline.memories.vectors import MemoryVectors
from pipeline.reindex.sql import statement
from pipeline.turns.vectors import TurnVectors
from pipeline.vector_index.projections import Projection

# Key of an advisory lock; no other lock uses it.
REINDEX_LOCK = 0x72656978
FIRST = UUID(int=0)
NOT_BUILT = (
    "The memories are indexed in {live}, but these settings ask for {name}. Run `make reindex` (or"
    " `memlane reindex`) with these settings, or go back to those before."
)


@dataclass(frozen=True, slots=True)
class ReindexProgress:
    """Number of texts in the index under construction, and in the complete index."""

    done: int
    total: int


class Indexes(LedgerStore):
    """States of the vector indexes."""

    async def live(self) -> str | None:
        """Return the name of the live index; None before the first start."""
        async with self._single.connect() as connection:
            return await _named(connection, "LIVE")

    async def require(self, name: str) -> None:
        """Check that `adopt` would accept this index. Errors: InvalidInput."""
        async with self._single.connect() as connection:
            live = await _named(connection, "LIVE")
            await _require_built(connection, live, name)

    async def adopt(self, name: str) -> None:
        """Make this index the live one.

        It must be live already, or be the first one, or be completely built; any index will do
        while there is nothing to be found. Rows changed since the build are stale in it, and
        written later.

        Errors: InvalidInput if it was never built.
        """
        async with self._engine.begin() as connection:
            # Until the commit, no write to the old index can be recorded in `projected_version`.
            await connection.execute(text("LOCK TABLE vector_indexes"))
            live = await _named(connection, "LIVE")
            if live == name:
                return
            await _require_built(connection, live, name)
            if live is not None:
                await _switch(connection)
            row = insert(vector_indexes).values(name=name, embedder="", state="LIVE")
            await connection.execute(
                row.on_conflict_do_update(index_elements=["name"], set_={"state": "LIVE"})
            )

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run one reindex at a time. Errors: Conflict while another one runs."""
        async with advisory_lock(self._engine, REINDEX_LOCK, wait=False) as locked:
            if not locked:
                raise Conflict("Another reindex is running.")
            yield

    async def known(self, name: str) -> bool:
        """Tell if this index is being built, complete or live."""
        query = select(vector_indexes.c.name).where(vector_indexes.c.name == name)
        return await fetch_value(self._single, query) is not None

    async def begin(self, name: str, embedder: str) -> None:
        """Start or continue the build of this index, and drop any other unfinished one."""
        others = (vector_indexes.c.name != name, vector_indexes.c.state != "LIVE")
        row = insert(vector_indexes).values(name=name, embedder=embedder, state="BUILDING")
        async with self._engine.begin() as connection:
            known = await connection.scalar(
                select(vector_indexes.c.name).where(vector_indexes.c.name == name)
            )
            if known is None:
                await connection.execute(text("TRUNCATE rebuilt"))
            await connection.execute(delete(vector_indexes).where(*others))
            await connection.execute(
                row.on_conflict_do_update(index_elements=["name"], set_={"state": "BUILDING"})
            )

    async def whole(self, name: str) -> None:
        """Record that the build of this index is complete."""
        build = update(vector_indexes).where(vector_indexes.c.name == name)
        await execute(self._single, build.values(state="WHOLE"))

    async def built(self, done: Sequence[Projection], *, reembedded: bool) -> None:
        """Record rows that were written to the index.

        `reembedded`: their vectors are new and are stored, too.
        """
        values = {
            "ids": [row.id for row in done],
            "versions": [row.version for row in done],
            "vectors": [to_bytes(row.vector) if reembedded else None for row in done],
        }
        await execute(self._single, statement("record_built"), values)

    async def done(self) -> int:
        """Return the number of vectors in the index under construction."""
        return await fetch_value(self._single, select(func.count()).select_from(rebuilt)) or 0


async def _named(connection: AsyncConnection, state: str) -> str | None:
    query = select(vector_indexes.c.name).where(vector_indexes.c.state == state)
    name: str | None = await connection.scalar(query)
    return name


async def _require_built(connection: AsyncConnection, live: str | None, name: str) -> None:
    """Check that this index can replace the live one. Errors: InvalidInput."""
    if live in (None, name) or await _named(connection, "WHOLE") == name:
        return
    if await connection.scalar(statement("has_rows")):
        raise InvalidInput(NOT_BUILT.format(live=live, name=name))


async def _switch(connection: AsyncConnection) -> None:
    for table in (MemoryVectors.table, TurnVectors.table):
        await connection.execute(statement("switch_vectors", table=table))
    await connection.execute(statement("mark_memories_stale"))
    await connection.execute(statement("mark_turns_stale"))
    await connection.execute(text("TRUNCATE rebuilt"))
    await connection.execute(delete(own_collections))
    await connection.execute(delete(vector_indexes).where(vector_indexes.c.state == "LIVE"))
