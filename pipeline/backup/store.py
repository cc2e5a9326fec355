"""The ledger's side of backup and restore: one snapshot with checksums; an empty or new ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.backup.manifest import TableState
from pipeline.backup.sql import statement
from pipeline.ledger.fetching import execute, fetch, fetch_value
from pipeline.ledger.store import LedgerStore


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """A state of the ledger that other sessions can read, too, by the snapshot's name.

    `schema`: newest migration; None in a database without tables.
    """

    connection: AsyncConnection
    name: str
    schema: str | None
    postgres: int
    taken_at: datetime

    async def tables(self) -> dict[str, TableState]:
        """Rows and checksum of each table. Reads everything."""
        names = [str(row[0]) for row in await self.connection.execute(statement("tables"))]
        states = {}
        for name in names:
            row = (await self.connection.execute(statement("checksum", table=name))).one()
            states[name] = TableState(row.rows, str(row.checksum))
        return states


class BackupStore(LedgerStore):
    """Snapshot of a ledger, and the steps of a restore."""

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[LedgerSnapshot]:
        """Open a snapshot for the block, which may take long.

        Autovacuum removes no row version that is newer than the snapshot.
        """
        reading = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        async with reading.connect() as connection:
            await _allow_full_reads(connection)
            row = (await connection.execute(statement("describe"))).one()
            schema = await _schema(connection)
            yield LedgerSnapshot(connection, row.name, schema, row.postgres // 10_000, row.taken_at)

    async def schema(self) -> str | None:
        """Newest migration of the database; None without tables."""
        async with self._single.connect() as connection:
            return await _schema(connection)

    async def tables(self) -> Mapping[str, TableState]:
        """Rows and checksum of each table, from one snapshot."""
        async with self.snapshot() as snapshot:
            return await snapshot.tables()

    async def postgres(self) -> int:
        """Major version of the server."""
        number = await fetch_value(self._single, text("SHOW server_version_num"))
        return int(number or 0) // 10_000

    async def contents(self) -> int:
        """Number of events and memories, counted up to a few. 0: a restore may replace the ledger.

        A ledger that was only started has a project and a key.
        """
        async with self._single.connect() as connection:
            if await _schema(connection) is None:
                return 0
            return int(await connection.scalar(statement("contents")) or 0)

    async def users(self) -> list[str]:
        """Names of the other sessions of Memlane in this database."""
        return [str(row[0]) for row in await fetch(self._single, statement("users"))]

    async def clear(self) -> None:
        """Drop all tables and functions of the schema, but not those of extensions."""
        async with self._engine.begin() as connection:
            names = [str(row[0]) for row in await connection.execute(statement("droppable"))]
            for name in names:
                await connection.execute(text(f"DROP {name} CASCADE"))

    async def make_lanes_due(self) -> int:
        """Let the sweeper queue all lanes with work again. Returns their number.

        The hints of the backup's time are not in the broker, and its workers do not run.
        """
        return await execute(self._engine, statement("make_lanes_due"))

    async def analyze(self) -> None:
        """Collect the statistics of all tables, which a restored database lacks."""
        await execute(self._single, text("ANALYZE"))


async def _allow_full_reads(connection: AsyncConnection) -> None:
    await connection.execute(text("SET LOCAL enable_seqscan = on"))
    await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
    await connection.execute(text("SET LOCAL timezone = 'UTC'"))  # in the text of times


async def _schema(connection: AsyncConnection) -> str | None:
    if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    schema: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return schema
