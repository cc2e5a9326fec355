"""Fill a ledger with a large project, in seconds: see fill.sql.

Triggers do not run, and secondary indexes are built afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from uuid import UUID

import asyncpg

MEMORIES_EACH, EVENTS_EACH = 5, 10
# Numbers of lanes above which building the secondary indexes at the end takes less time.
MANY_LANES = 5_000
VECTOR_BYTES = 1_536
EMBEDDER = "fake/hash"
INDEXES = """
    SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS definition
    FROM pg_index WHERE indrelid = ANY (CAST($1 AS regclass[])) AND NOT indisunique
      AND NOT indisexclusion
"""
SIZES = """
    SELECT relname, pg_total_relation_size(oid) AS bytes FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def statements() -> Iterator[tuple[str, str]]:
    """Names of the filled tables, in order, and their statements."""
    written = (resources.files(__package__) / "fill.sql").read_text("utf-8")
    for part in written.split("\n;\n"):
        if part.strip():
            yield part.partition("INSERT INTO ")[2].split()[0], part


async def fill(
    url: str,
    project_id: UUID,
    *,
    lanes: int,
    events_each: int = EVENTS_EACH,
    vector_bytes: int = VECTOR_BYTES,
    embedder: str = EMBEDDER,
    analyze: bool = True,
) -> None:
    """Fill a migrated database with this project's rows. The role must be a superuser.

    `events_each`: events of a lane, 5 or more. `vector_bytes`: size of a memory's vector in the
    ledger. `analyze`: without it, and with at most MANY_LANES, plans that were made before stay.
    """
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "SET session_replication_role = replica; SET synchronous_commit = off;"
            " SET maintenance_work_mem = '256MB'; SET work_mem = '128MB'"
        )
        tables = [table for table, _ in statements()]
        indexes = await connection.fetch(INDEXES, tables) if lanes > MANY_LANES else []
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['name']}")
        # One transaction: now() is the same in all statements.
        values = {"lanes": lanes, "events": events_each, "vector_bytes": vector_bytes}
        async with connection.transaction():
            for _, statement in statements():
                words = statement.format(project=project_id, embedder=embedder, **values)
                await connection.execute(words)
        for index in indexes:
            await connection.execute(index["definition"])
        await connection.execute(
            "VACUUM ANALYZE" if analyze else "SELECT pg_stat_force_next_flush()"
        )
    finally:
        await connection.close()


async def sizes(url: str) -> dict[str, int]:
    """Bytes of each table with its indexes."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(SIZES)
    finally:
        await connection.close()
    return {row["relname"]: row["bytes"] for row in rows}
