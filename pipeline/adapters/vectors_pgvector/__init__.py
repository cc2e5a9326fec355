"""The VectorStore port on pgvector, in the ledger's own PostgreSQL: no further server.

A collection is a table in the schema memlane_vectors. If few records pass the filter, they are
found through B-trees and compared one by one; otherwise the HNSW graph is scanned until enough
records pass. The graph compares the signs of rotated vectors, then the vectors of its candidates
are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.adapters.vectors_pgvector.rotated import bits, signs
from pipeline.domain.errors import CollectionMissing, InvalidInput, StoreUnavailable
from pipeline.domain.vectors import Vector, as_vector, wider
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.sql_files import loader
from pipeline.ledger.statements import Direct
from pipeline.ports import CollectionInfo, VectorHit, VectorRecord

# Inside the class the method `list` hides the built-in type.
Records = list[VectorRecord]
Names = list[str]
Ids = list[UUID]
Hits = list[list[VectorHit]]

# Payload keys with a column; conditions on other keys are evaluated on the payload.
COLUMNS = ("project_id", "lane_id", "user_id", "agent_id", "app_id", "run_id")
# Maximum number of records that are compared one by one; beyond it the graph is scanned. Comparing
# 10,000 takes 4 ms longer than a scan.
# Source: tests/bench/search_latency.py.
MOST_EXACT = 10_000
ALL = 2**62
ANY_RECORD = "true"
# Records of one transaction. Each takes milliseconds, for its place in the graph, and the time of a
# transaction is limited.
AT_ONCE = 50
# Maximum number of records that a scan of the graph visits if few of them pass the filter.
MOST_WALKED = 100_000
# Minimum number of candidates of a scan, and the maximum of hnsw.ef_search.
NARROWEST, BROADEST = 200, 1_000
# See VectorStore.reach. They find 98 % or more of the ten nearest of 20,000 and of 100,000.
# Source: tests/bench/growth/scope.py.
REACH, RECORDS = 300, 25_000
LIMITS = {"walked": MOST_WALKED, "broadest": BROADEST}
# Key of the advisory lock: any constant that nothing else in the database uses.
SET_UP_LOCK = 0x70677663
# No such table, no such schema, or a table of an earlier release, which has no signs.
MISSING = ("42P01", "3F000", "42703")


# Operands that an HNSW index compares, by the suffix of its name. Earlier releases made
# graphs of halves: twice as slow, 8 times as large, and only up to 4,000 dimensions.
COMPARED = {
    "signs": "signs <~> CAST(:signs AS bit({bits}))",
    "near": "CAST(embedding AS halfvec({dimensions})) "
    "<=> CAST(CAST(CAST(:vector AS real[]) AS vector) AS halfvec({dimensions}))",
}

statement = loader(__name__)


class Pgvector:
    """The VectorStore port on the ledger's engine, whose connection pool it shares.

    An insert into a table of an earlier release raises CollectionMissing until `create_col` is
    called, which adds the column of the signs. Its graph stays as it is.
    """

    name = "pgvector"

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)

    async def close(self) -> None:
        """Nothing to release: the engine belongs to the ledger."""

    def reach(self, records: int) -> int:
        return wider(REACH, records, than=RECORDS)

    async def ping(self) -> None:
        async with self._autocommit() as connection:
            await connection.execute(text("SELECT 1"))

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        async with self._transaction() as connection:
            # CREATE … IF NOT EXISTS fails if two sessions run it at the same time.
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({SET_UP_LOCK})"))
            await _each(connection, statement("set_up"))
            collection = {"name": name, "dimensions": dimensions, "embedder": embedder}
            built_with = await connection.scalar(statement("register"), collection)
            if built_with != embedder:
                raise InvalidInput(
                    f"Collection {name} holds vectors of {built_with}, not of {embedder}: "
                    "vectors of two models cannot be compared."
                )
            parts = {
                "table": _table(name),
                "index": _digest(name),
                "dimensions": str(dimensions),
                "bits": str(bits(dimensions)),
            }
            table = (await connection.execute(statement("table"), {"table": _table(name)})).one()
            await _each(connection, statement("make", **parts))
            if not table.exists:
                await connection.execute(statement("make_graph", **parts))
            elif not table.signed:
                await connection.execute(statement("add_signs", **parts))

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        if not records:
            return
        # Lock order: records by id, so that two writers of the same rows never deadlock.
        records = sorted(records, key=lambda record: record.id)
        rows = [
            {
                "id": record.id,
                "embedding": record.vector.tolist(),
                "signs": signs_of,
                "payload": orjson.dumps(dict(record.payload)).decode(),
            }
            for record, signs_of in zip(records, signs([r.vector for r in records]), strict=True)
        ]
        put = statement("put", table=_table(name))
        for start in range(0, len(rows), AT_ONCE):
            async with self._transaction() as connection:
                await connection.execute(put, rows[start : start + AT_ONCE])

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Hits:
        passes, values = _filter(where)
        parts = {"table": _table(name), "passes": passes}
        queries = [values | {"vector": vector.tolist(), "limit": limit} for vector in vectors]
        if where and (hits := await self._compared(parts, queries, MOST_EXACT)) is not None:
            return hits
        if not vectors or (graph := await self._graph(name)) is None:
            return await self._compared(parts, queries, ALL) or []
        dimensions = len(vectors[0])
        compared = COMPARED[graph].format(dimensions=dimensions, bits=bits(dimensions))
        scans = [
            query | {"signs": signs_of, "candidates": max(limit, NARROWEST)}
            for query, signs_of in zip(queries, signs(vectors), strict=True)
        ]
        return await self._walked(parts | {"compared": compared}, scans)

    async def _compared(
        self, parts: Mapping[str, str], queries: Sequence[Mapping[str, Any]], most: int
    ) -> Hits | None:
        """The nearest of all records that pass the filter; None if more than `most` pass."""
        hit_lists: Hits = []
        for query in queries:
            rows = await self._rows(statement("exact", **parts), {**query, "most": most})
            if rows[0].count > most:
                return None
            hit_lists.append([VectorHit(of, near) for _, of, near in rows if of is not None])
        return hit_lists

    async def _graph(self, name: str) -> str | None:
        """Key in COMPARED of the graph of a collection; None if it has no graph."""
        rows = await self._rows(statement("graph"), {"index": _digest(name)})
        return rows[0].graph if rows else None

    async def _walked(self, parts: Mapping[str, str], scans: Sequence[Mapping[str, Any]]) -> Hits:
        """The nearest records that iterative scans of the HNSW graph find, for each query."""
        near = statement("near", **parts)
        if parts["passes"] == ANY_RECORD:
            rows = [await self._rows(near, {**LIMITS, **scan}) for scan in scans]
        else:
            async with self._transaction() as connection:
                # The filter's values determine whether the graph or a B-tree is faster.
                await connection.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))
                rows = [
                    (await connection.execute(near, {**LIMITS, **scan})).all() for scan in scans
                ]
        return [[VectorHit(of, similarity) for of, similarity in some] for some in rows]

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None:
        await self.insert(name, records)

    async def delete(self, name: str, ids: Sequence[UUID]) -> None:
        async with self._autocommit() as connection:
            gone = text(f"DELETE FROM {_table(name)} WHERE id = ANY(:ids)")  # noqa: S608
            await connection.execute(gone, {"ids": list(ids)})

    async def get(self, name: str, ids: Sequence[UUID]) -> Records:
        return await self._records(name, "id = ANY(:ids)", {"ids": list(ids)}, limit=len(ids))

    async def differing(self, name: str, records: Sequence[VectorRecord]) -> Ids:
        stored = {row.id: row.payload for row in await self.get(name, [row.id for row in records])}
        return [row.id for row in records if stored.get(row.id) != row.payload]

    async def list(self, name: str, *, where: Mapping[str, str | int], limit: int) -> Records:
        passes, values = _filter(where)
        return await self._records(name, passes, values, limit=limit)

    async def list_cols(self) -> Names:
        try:
            async with self._autocommit() as connection:
                names = await connection.scalars(
                    text("SELECT name FROM memlane_vectors.collections")
                )
                return list(names)
        except CollectionMissing:  # no collection was ever created
            return []

    async def delete_col(self, name: str) -> None:
        try:
            async with self._transaction() as connection:
                forget = text("DELETE FROM memlane_vectors.collections WHERE name = :name")
                await connection.execute(forget, {"name": name})
                await connection.execute(text(f"DROP TABLE IF EXISTS {_table(name)}"))
        except CollectionMissing:
            return

    async def col_info(self, name: str) -> CollectionInfo | None:
        try:
            async with self._autocommit() as connection:
                result = await connection.execute(
                    statement("info", table=_table(name)), {"name": name}
                )
                row = result.one()
        except CollectionMissing:
            return None
        return CollectionInfo(name, row.records, row.dimensions, row.embedder)

    async def reset(self) -> None:
        for name in await self.list_cols():
            await self.delete_col(name)

    async def _records(
        self, name: str, passes: str, values: Mapping[str, Any], *, limit: int
    ) -> Records:
        query = statement("records", table=_table(name), passes=passes)
        async with self._autocommit() as connection:
            rows = (await connection.execute(query, {**values, "limit": limit})).all()
        return [VectorRecord(row.id, as_vector(row.vector), row.payload) for row in rows]

    async def _rows(self, query: TextClause, values: Mapping[str, Any]) -> Sequence[Any]:
        """Rows of a query that every search runs: executed without SQLAlchemy's overhead."""
        with _our_errors():
            return await self._direct.rows(query, values)

    @asynccontextmanager
    async def _autocommit(self) -> AsyncIterator[AsyncConnection]:
        """A connection in autocommit mode: each statement is its own transaction."""
        with _our_errors():
            async with self._single.connect() as connection:
                yield connection

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        """A connection with one transaction for all statements."""
        with _our_errors():
            async with self._engine.begin() as connection:
                yield connection


async def _each(connection: AsyncConnection, statements: TextClause) -> None:
    """Run statements one at a time: PostgreSQL prepares only single statements."""
    for single in statements.text.split(";\n"):
        await connection.execute(text(single))


def _digest(name: str) -> str:
    """Name of the collection's table, because a collection's name may be longer than 63 bytes."""
    return "c_" + hashlib.blake2b(name.encode(), digest_size=12).hexdigest()


def _table(name: str) -> str:
    return f"memlane_vectors.{_digest(name)}"


def _filter(equal: Mapping[str, str | int]) -> tuple[str, dict[str, Any]]:
    """A WHERE condition and its parameters.

    Keys with a column are compared with it, all others with the payload.
    """
    values: dict[str, Any] = {
        key: value for key, value in equal.items() if key in COLUMNS and isinstance(value, str)
    }
    conditions = [f"{key} = :{key}" for key in values]
    if rest := {key: value for key, value in equal.items() if key not in values}:
        conditions.append("payload @> CAST(:rest AS jsonb)")
        values["rest"] = orjson.dumps(rest).decode()
    return " AND ".join(conditions) or ANY_RECORD, values


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


@contextmanager
def _our_errors() -> Iterator[None]:
    """Translate errors of the database into CollectionMissing and StoreUnavailable."""
    try:
        yield
    except DBAPIError as error:
        if _state(error) in MISSING:
            raise CollectionMissing("PostgreSQL knows no such collection.") from error
        if isinstance(error, LedgerUnavailable) and not error.reached:
            raise StoreUnavailable(f"PostgreSQL does not answer: {error.reason}") from error
        raise StoreUnavailable(f"pgvector failed: SQLSTATE {_state(error)}.") from error
