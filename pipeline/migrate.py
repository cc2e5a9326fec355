"""Bring the database to the newest schema; the first time, make a project and its key. Then serve
the vector index the settings ask for, or refuse where it was never built.

    python -m pipeline.migrate [--key-file PATH] [--revise MESSAGE]

Safe to run from several processes at once: an advisory lock lets one through at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline import settings
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.engine import UNLIMITED, SettingsMissing, connect
from pipeline.reindex.store import Indexes
from pipeline.tenants.projects import Projects
from pipeline.vector_index.names import index_name

# Any constant will do, as long as nothing else in the database uses it.
MIGRATION_LOCK = 0x6D656D6C
LOCK_TIMEOUT, LOCK_NOT_AVAILABLE = "10s", "55P03"
IN_USE = (
    "A table that the migration changes was in use for 10 s, by a long transaction or a backup. "
    "Nothing was changed: end it, or wait for its end, and start again."
)
OLDEST_PGVECTOR = (0, 8)  # the first that walks its graph on until enough passes a filter
NO_PGVECTOR = (
    "MEMLANE_VECTORS=pgvector needs the extension pgvector, 0.8 or newer, in the ledger's "
    "PostgreSQL. Install it and run CREATE EXTENSION vector as an administrator, or choose "
    "another backend."
)


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(resources.files("pipeline.ledger").joinpath("migrations"))
    )
    config.attributes["connection"] = connection
    return config


async def migrate(engine: AsyncEngine) -> None:
    """Errors: InvalidInput where a table is in use for longer than everybody else can wait: they
    queue behind whoever waits for a table as a whole.
    """
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
            await connection.run_sync(lambda sync: command.upgrade(alembic_config(sync), "head"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise InvalidInput(IN_USE) from error


async def add_pgvector(engine: AsyncEngine) -> None:
    """Make the extension, where it is not.

    Errors: InvalidInput where this PostgreSQL has none, or an old one, or we may not.
    """
    version = text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            found = str(await connection.scalar(version))
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        raise InvalidInput(f"{NO_PGVECTOR} (SQLSTATE {state})") from error
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST_PGVECTOR:
        raise InvalidInput(f"{NO_PGVECTOR} (It has {found}.)")


async def serve_index(engine: AsyncEngine, configured: settings.Settings) -> None:
    """Errors: InvalidInput where the index that is asked for cannot be served."""
    if configured.vectors == "pgvector":
        await add_pgvector(engine)
    name = index_name(configured.vectors, configured.embedder.model, configured.buckets)
    await Indexes(engine).adopt(name)


async def require_durability(engine: AsyncEngine) -> None:
    """Errors: InvalidInput where a commit may be lost with the server that acknowledged it."""
    async with engine.connect() as connection:
        level = await connection.scalar(text("SHOW synchronous_commit"))
    if level == "off":
        raise InvalidInput(
            "PostgreSQL's synchronous_commit is off for this database and role: what is accepted "
            "could be lost. Set it to on (on or remote_apply with synchronous standbys)."
        )


async def revise(engine: AsyncEngine, message: str) -> None:
    """Write the next revision from the difference between the tables and the database."""
    async with engine.begin() as connection:
        await connection.run_sync(
            lambda sync: command.revision(alembic_config(sync), message, autogenerate=True)
        )


async def first_project(engine: AsyncEngine, key_file: Path) -> None:
    """Create a project with a key in `key_file` (mode 600), unless the database has one."""
    projects = Projects(engine)
    if await projects.any():
        return
    _, key = await projects.create("default", operator=True)
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(key + "\n")


async def _main(arguments: argparse.Namespace) -> None:
    configured = settings.load()
    url = configured.database_url
    if url is None:
        raise InvalidInput("MEMLANE_DATABASE_URL is not set: there is no database to migrate.")
    engine = connect(url.get_secret_value(), pool_size=2, limits=UNLIMITED)
    try:
        if arguments.revise:
            await revise(engine, arguments.revise)
            return
        await require_durability(engine)
        await migrate(engine)
        if arguments.key_file:
            await first_project(engine, arguments.key_file)
        await serve_index(engine, configured)
    finally:
        await engine.dispose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="pipeline.migrate", description=__doc__)
    parser.add_argument("--key-file", type=Path)
    parser.add_argument("--revise", metavar="MESSAGE")
    try:
        asyncio.run(_main(parser.parse_args()))  # noqa: TID251  an entry of its own
    except (InvalidInput, SettingsMissing) as error:
        sys.exit(str(error))
