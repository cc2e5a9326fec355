"""Migrate the database to the newest schema, then select the configured vector index.

    python -m pipeline.migrate [--key-file PATH] [--revise MESSAGE] [--check-index]

With `--key-file`, an empty database gets a project and an API key. Exits with code 2 and a sentence
if the vector index of the settings was never built, or if the schema is that of a newer release, or
of an early build of 0.1.
With `--check-index` only the index is checked, and nothing changes.

Several processes may run this at the same time: an advisory lock makes them take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from pydantic import ValidationError
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline import __version__, settings
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.engine import UNLIMITED, SettingsMissing, connect
from pipeline.ledger.failures import LedgerUnavailable, sqlstate
from pipeline.ledger.fetching import fetch_value
from pipeline.ledger.locks import advisory_lock
from pipeline.ledger.upgrade_plan import Catalog, MigrationPlan, plan
from pipeline.reindex.store import Indexes
from pipeline.startup import REFUSED, sentence
from pipeline.tenants.projects import Projects
from pipeline.vector_index.names import index_name

# Key of the advisory lock: any constant that nothing else in the database uses.
MIGRATION_LOCK = 0x6D656D6C
POLL_S = 0.2
LOCK_TIMEOUT, LOCK_NOT_AVAILABLE = "10s", "55P03"
# Attempts at a migration that PostgreSQL ends to resolve a deadlock with other transactions.
ATTEMPTS, DEADLOCK = 5, "40P01"
IN_USE = (
    "A table that the migration changes was in use for 10 s, by a long transaction or a backup. "
    "The migrations before it are applied: end it, or wait for its end, and start again."
)
UNKNOWN_REVISION = re.compile(r"locate revision identified by '(\w+)'")
NEWER = (
    "The database has schema {schema}, which this release (Memlane {version}) does not know:"
    " a newer release wrote it. Install that release again, or restore a backup from before the"
    " upgrade. Nothing was changed."
)
# The last commit with the migrations that the baseline replaces.
BEFORE_BASELINE = "7d2a913"
OLDER = (
    "The database has schema {schema}, of an early build of Memlane 0.1. This release (Memlane"
    f" {{version}}) upgrades from schema {{oldest}}: migrate with commit {BEFORE_BASELINE} first,"
    " see docs/howto/upgrade.md. Nothing was changed."
)
MIGRATIONS = Path(str(resources.files("pipeline.ledger").joinpath("migrations")))
# Folders with migrations.
VERSIONS: tuple[Path, ...] = (MIGRATIONS / "versions",)
# Estimates of the planner: exact numbers would read all rows.
ROWS = """
    SELECT relname AS name, greatest(reltuples, 0)::bigint AS rows FROM pg_class
    WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace)
"""
INDEXES = """
    SELECT indexname AS name, tablename AS table_name FROM pg_indexes
    WHERE schemaname = current_schema()
"""
NO_ANSWER = (
    "The database of MEMLANE_DATABASE_URL does not answer ({reason}). Check its host, port, user"
    " and password, and that it runs."
)
NO_LEDGER = "There is no ledger yet: run `make up` (or `pipeline.migrate`) first."
OLDEST_PGVECTOR = (0, 8)  # the first with iterative index scans
NO_PGVECTOR = (
    "MEMLANE_VECTORS=pgvector needs the extension pgvector, 0.8 or newer, in the ledger's "
    "PostgreSQL. Install it and run CREATE EXTENSION vector as an administrator, or choose "
    "another backend."
)


class InUse(InvalidInput):
    """Another transaction holds a table that the migration changes: a retry can help."""


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration for the ledger's migrations, over an open connection if given."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_locations", os.pathsep.join(map(str, VERSIONS)))
    config.attributes["connection"] = connection
    return config


def is_known(schema: str) -> bool:
    """Tell if this release has the migration `schema`: if not, a newer release wrote it."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return schema in {script.revision for script in scripts.walk_revisions()}


def is_older(schema: str) -> bool:
    """Tell if `schema` is of an early build of 0.1, from before the baseline of the migrations."""
    return schema < oldest_schema()


def unknown_schema(schema: str) -> str:
    """The reason why this release cannot work with `schema`, and what to do."""
    text = OLDER if is_older(schema) else NEWER
    return text.format(schema=schema, version=__version__, oldest=oldest_schema())


def oldest_schema() -> str:
    """The oldest schema that this release can upgrade."""
    base = ScriptDirectory.from_config(alembic_config()).get_base()
    assert base is not None
    return base


def newest_schema() -> str:
    """The newest migration of this release."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None
    return head


async def pending(engine: AsyncEngine) -> list[MigrationPlan]:
    """The plans of the migrations that the database lacks, in order; nothing changes.

    Errors: InvalidInput if a newer release wrote the schema.
    """
    async with engine.connect() as connection:
        schema = await connection.run_sync(
            lambda sync: MigrationContext.configure(sync).get_current_revision()
        )
        catalog = Catalog(
            {row.name: row.rows for row in await connection.execute(text(ROWS))},
            {row.name: row.table_name for row in await connection.execute(text(INDEXES))},
        )
    if schema is not None and not is_known(schema):
        raise InvalidInput(unknown_schema(schema))
    scripts = ScriptDirectory.from_config(alembic_config())
    newer = scripts.iterate_revisions("head", schema or "base")
    return [plan(script, catalog) for script in reversed(list(newer))]


async def migrate(engine: AsyncEngine) -> None:
    """Apply all pending migrations, each in a transaction of its own.

    A table is closed only while the one migration that changes it runs; indexes are built, and rows
    filled, beside writers (pipeline.ledger.migrations.online). One that fails leaves those before
    it applied, and the next call continues there; after a deadlock this one does. It opens two
    connections of its own.

    Errors: InvalidInput if a table that a migration changes is locked for longer than LOCK_TIMEOUT.
    Waiting longer would block all other statements on that table, because they queue behind the
    migration's lock.
    """
    url = engine.url.render_as_string(hide_password=False)
    own = connect(url, pool_size=2, name="memlane migrate", limits=UNLIMITED)
    try:
        for left in reversed(range(ATTEMPTS)):
            if await _upgrade_in_turn(own, last=not left):
                break
    except CommandError as error:
        if (unknown := UNKNOWN_REVISION.search(str(error))) is None:
            raise
        raise InvalidInput(unknown_schema(unknown[1])) from None
    except DBAPIError as error:
        if sqlstate(error) not in (LOCK_NOT_AVAILABLE, DEADLOCK):
            raise
        raise InUse(IN_USE) from error
    finally:
        await own.dispose()


async def _upgrade_in_turn(engine: AsyncEngine, *, last: bool) -> bool:
    """Apply the migrations, or wait until another process has. False after a deadlock.

    `last`: a deadlock is an error.
    """
    try:
        while not await _upgrade_alone(engine):  # noqa: ASYNC110  it waits for another process
            await asyncio.sleep(POLL_S)
    except DBAPIError as error:
        if last or sqlstate(error) != DEADLOCK:
            raise
        return False
    return True


async def _upgrade_alone(engine: AsyncEngine) -> bool:
    """Apply the migrations. False if another process does."""
    async with advisory_lock(engine, MIGRATION_LOCK, wait=False) as locked:
        if locked:
            async with engine.connect() as connection:
                await connection.run_sync(_upgrade)
        return locked


def _upgrade(connection: Connection) -> None:
    def limit(begun: Connection) -> None:
        # Not for steps that commit by themselves: those wait for others without blocking them.
        if begun.get_isolation_level() != "AUTOCOMMIT":
            begun.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")

    event.listen(connection, "begin", limit)
    try:
        command.upgrade(alembic_config(connection), "head")
    finally:
        event.remove(connection, "begin", limit)


async def require_ledger(engine: AsyncEngine) -> None:
    """Check that the database has a ledger. Errors: InvalidInput."""
    if await fetch_value(engine, text("SELECT to_regclass('alembic_version')")) is None:
        raise InvalidInput(NO_LEDGER)


async def add_pgvector(engine: AsyncEngine) -> None:
    """Create the extension pgvector unless it exists.

    Errors: InvalidInput if the server has no pgvector, one older than 0.8, or if the role may not
    create extensions.
    """
    version = text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            installed = str(await connection.scalar(version))
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        raise InvalidInput(f"{NO_PGVECTOR} (SQLSTATE {state})") from error
    if tuple(int(part) for part in installed.split(".")[:2]) < OLDEST_PGVECTOR:
        raise InvalidInput(f"{NO_PGVECTOR} (It has {installed}.)")


async def serve_index(engine: AsyncEngine, configured: settings.Settings) -> None:
    """Select the vector index of the settings. Errors: InvalidInput if it cannot be served."""
    if configured.vectors == "pgvector":
        await add_pgvector(engine)
    await Indexes(engine).adopt(_index_of(configured))


def _index_of(configured: settings.Settings) -> str:
    return index_name(configured.vectors, configured.embedder.model, configured.buckets)


async def require_durability(engine: AsyncEngine) -> None:
    """Check that the server acknowledges a commit only when it is durable.

    Errors: InvalidInput if synchronous_commit is off.
    """
    if await fetch_value(engine, text("SHOW synchronous_commit")) == "off":
        raise InvalidInput(
            "PostgreSQL's synchronous_commit is off for this database and role: what is accepted "
            "could be lost. Set it to on (on or remote_apply with synchronous standbys)."
        )


async def revise(engine: AsyncEngine, message: str) -> None:
    """Generate a migration from the difference between the tables in the code and the database."""
    async with engine.begin() as connection:
        await connection.run_sync(
            lambda sync: command.revision(alembic_config(sync), message, autogenerate=True)
        )


async def first_project(engine: AsyncEngine, key_file: Path) -> None:
    """Create a project and write its API key to `key_file` (mode 600), unless a project exists."""
    projects = Projects(engine)
    if await projects.any():
        return
    _, key = await projects.create("default", operator=True)
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(key + "\n")


async def _main(arguments: argparse.Namespace) -> None:
    """Run the migration that the arguments ask for. Errors: InvalidInput, SettingsMissing."""
    configured = settings.load()
    url = configured.database_url
    if url is None:
        raise InvalidInput("MEMLANE_DATABASE_URL is not set: there is no database to migrate.")
    engine = connect(url.get_secret_value(), pool_size=2, limits=UNLIMITED)
    try:
        if arguments.revise:
            await revise(engine, arguments.revise)
            return
        if arguments.check_index:
            await Indexes(engine).require(_index_of(configured))
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
    parser.add_argument("--check-index", action="store_true")
    try:
        asyncio.run(_main(parser.parse_args()))  # noqa: TID251  an entry point
    except InUse as error:
        sys.exit(str(error))
    except LedgerUnavailable as error:
        sys.exit(NO_ANSWER.format(reason=error.reason))
    except SettingsMissing as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(REFUSED)
    except (InvalidInput, ValidationError) as error:
        sys.stderr.write(f"{sentence(error)}\n")
        sys.exit(REFUSED)
