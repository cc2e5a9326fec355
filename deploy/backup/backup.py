"""Copy the ledger into a directory: pg_dump and the checksums read one snapshot."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from deploy.backup import archive, clients
from deploy.backup.settings import NO_SETTINGS, RecordedSettings
from deploy.stack.failure import StackError
from pipeline import __version__
from pipeline.backup.manifest import Manifest, to_json
from pipeline.backup.store import BackupStore, LedgerSnapshot
from pipeline.ledger.engine import UNLIMITED, connect

# The vectors of pgvector are in a schema of their own, and are built again.
OPTIONS = (
    *("--format=custom", "--compress=1", "--no-owner", "--no-privileges"),
    *("--no-publications", "--no-subscriptions", "--exclude-schema=memlane_vectors"),
)
NO_LEDGER = "The database has no ledger: there is nothing to back up."


async def back_up(
    database_url: str, directory: Path, recorded: RecordedSettings = NO_SETTINGS
) -> Manifest:
    """Write a backup of the ledger, while Memlane goes on. Returns its manifest.

    `recorded`: settings of the stack, for the manifest.

    Errors: StackError if the directory exists, pg_dump is missing or fails, or without a ledger.
    """
    engine = connect(database_url, pool_size=1, name="memlane backup", limits=UNLIMITED)
    try:
        async with BackupStore(engine).snapshot() as snapshot:
            if snapshot.schema is None:
                raise StackError(NO_LEDGER)
            program = clients.find("pg_dump", server=snapshot.postgres)
            with archive.written_whole(directory) as draft:
                manifest = replace(
                    await _write(program, database_url, snapshot, draft),
                    settings=recorded.values,
                    left_out=recorded.left_out,
                )
                (draft / archive.MANIFEST).write_bytes(to_json(manifest))
    finally:
        await engine.dispose()
    return manifest


async def _write(
    program: clients.ClientProgram, database_url: str, snapshot: LedgerSnapshot, draft: Path
) -> Manifest:
    """Run pg_dump and read the checksums at the same time."""
    assert snapshot.schema is not None
    path = draft / archive.ARCHIVE
    target, env = clients.connection_arguments(database_url)
    argv = [str(program.path), *OPTIONS, f"--snapshot={snapshot.name}", f"--file={path}", *target]
    dump = asyncio.create_task(asyncio.to_thread(clients.run, argv, env))
    try:
        tables = await snapshot.tables()
    finally:
        await dump
    return Manifest(
        memlane=__version__,
        schema=snapshot.schema,
        postgres=snapshot.postgres,
        taken_at=snapshot.taken_at.isoformat(timespec="seconds"),
        archive=archive.ARCHIVE,
        size_bytes=path.stat().st_size,
        sha256=await asyncio.to_thread(archive.digest, path),
        tables=tables,
    )
