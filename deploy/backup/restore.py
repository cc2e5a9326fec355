"""Bring a backup into an empty database, in one transaction, and prepare it for the processes.

    check the files ─► refuse users and contents ─► pg_restore ─► compare ─► migrate ─► lanes due

A restore that is interrupted before the comparison leaves an empty database. What follows it can be
repeated: the next start migrates, and the sweeper queues lanes that are overdue.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.backup import archive, clients
from deploy.stack.failure import StackError
from pipeline import __version__
from pipeline.accounting.balance import Balance, Totals
from pipeline.backup.manifest import Manifest, TableState, differences
from pipeline.backup.store import BackupStore
from pipeline.ledger.engine import UNLIMITED, connect
from pipeline.migrate import BEFORE_BASELINE, is_known, is_older, migrate

NEWER = (
    "The backup has schema {schema} (Memlane {theirs}), which this release (Memlane {ours}) does"
    " not know: a newer release wrote it. Install that release, or use an older backup."
)
OLDER = (
    "The backup has schema {schema} (Memlane {theirs}), too old for this release. Restore and"
    f" migrate it with commit {BEFORE_BASELINE}, see docs/howto/upgrade.md, and make a backup of"
    " that."
)
IN_USE = "Stop the processes of Memlane first: {names} use this database."
NOT_EMPTY = (
    "The database has events or memories. A backup is restored into an empty database: create one,"
    " and name it in MEMLANE_DATABASE_URL (the local stack: `memlane reset`)."
)
DIFFERENT = "The restored tables differ from the backup, and were removed: {listed}."
# The archive's list has entries that need an administrator and that the ledger does not need.
FOREIGN = (" EXTENSION ", " SCHEMA ")
OPTIONS = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
# More memory for the indexes: each is sorted once.
SESSION = "-c maintenance_work_mem=256MB"


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore. `lanes`: queues with work that the sweeper takes up again."""

    manifest: Manifest
    lanes: int
    totals: Totals


def check(directory: Path) -> Manifest:
    """Read a backup back as a whole, and compare rows and SHA-256 with its manifest.

    Errors: StackError, InvalidInput.
    """
    manifest = archive.read_manifest(directory)
    require_known(manifest)
    archive.require_unchanged(directory, manifest)
    archive.require_rows(directory, manifest)
    return manifest


def require_known(manifest: Manifest) -> None:
    """Check that this release knows the backup's schema. Errors: StackError."""
    if is_older(manifest.schema):
        raise StackError(OLDER.format(schema=manifest.schema, theirs=manifest.memlane))
    if not is_known(manifest.schema):
        raise StackError(
            NEWER.format(schema=manifest.schema, theirs=manifest.memlane, ours=__version__)
        )


async def restore(database_url: str, directory: Path) -> Restored:
    """Restore a backup into a database without events and memories.

    The tables of a ledger that was only started are replaced, its project and key among them.

    Errors: StackError, InvalidInput; then the database is as before, or empty.
    """
    manifest = archive.read_manifest(directory)
    require_known(manifest)
    await asyncio.to_thread(archive.require_unchanged, directory, manifest)
    engine = connect(database_url, pool_size=2, name="memlane backup", limits=UNLIMITED)
    try:
        store = BackupStore(engine)
        server = await store.postgres()
        program = clients.find("pg_restore", server=max(server, manifest.postgres))
        await _require_free(store)
        await store.clear()
        path = directory / manifest.archive
        await asyncio.to_thread(_load, program, database_url, path)
        await _compare(store, manifest.tables)
        await store.analyze()
        await migrate(engine)
        lanes = await store.make_lanes_due()
        return Restored(manifest, lanes, await Balance(engine).totals())
    finally:
        await engine.dispose()


async def _require_free(store: BackupStore) -> None:
    if names := await store.users():
        raise StackError(IN_USE.format(names=", ".join(names)))
    if await store.contents():
        raise StackError(NOT_EMPTY)


def _load(program: clients.ClientProgram, database_url: str, path: Path) -> None:
    """Run pg_restore for everything in the archive but extensions and schemas."""
    target, env = clients.connection_arguments(database_url)
    listed = subprocess.run(
        [str(program.path), "--list", str(path)], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        raise StackError(
            f"pg_restore cannot read the archive: {clients.messages(listed.stderr.encode())}"
        )
    entries = [
        line for line in listed.stdout.splitlines() if not any(kind in line for kind in FOREIGN)
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
        file.write("\n".join(entries))
        file.flush()
        argv = [str(program.path), *OPTIONS, f"--use-list={file.name}", *target, str(path)]
        clients.run(argv, env | {"PGOPTIONS": SESSION})


async def _compare(store: BackupStore, expected: Mapping[str, TableState]) -> None:
    """Compare all tables with the manifest. Errors: StackError; then the tables are removed."""
    if wrong := differences(expected, await store.tables()):
        await store.clear()
        listed = ", ".join(f"{name} ({reason})" for name, reason in wrong.items())
        raise StackError(DIFFERENT.format(listed=listed))
