"""Bring the database to the newest schema; the first time, make a project and its key.

    python -m pipeline.ledger.migrate [--key-file PATH] [--revise MESSAGE]

Safe to run from several processes at once: an advisory lock lets one through at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline import settings
from pipeline.errors import InvalidInput
from pipeline.ledger import connect
from pipeline.ledger.projects import Projects

# Any constant will do, as long as nothing else in the database uses it.
MIGRATION_LOCK = 0x6D656D6C


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(resources.files("pipeline.ledger").joinpath("migrations"))
    )
    config.attributes["connection"] = connection
    return config


async def migrate(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        await connection.run_sync(lambda sync: command.upgrade(alembic_config(sync), "head"))


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
    url = settings.load().database_url
    if url is None:
        raise InvalidInput("MEMLANE_DATABASE_URL is not set: there is no database to migrate.")
    engine = connect(url.get_secret_value(), pool_size=2)
    try:
        if arguments.revise:
            await revise(engine, arguments.revise)
            return
        await migrate(engine)
        if arguments.key_file:
            await first_project(engine, arguments.key_file)
    finally:
        await engine.dispose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="pipeline.ledger.migrate", description=__doc__)
    parser.add_argument("--key-file", type=Path)
    parser.add_argument("--revise", metavar="MESSAGE")
    asyncio.run(_main(parser.parse_args()))  # noqa: TID251  an entry of its own
