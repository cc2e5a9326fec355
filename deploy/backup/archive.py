"""Files of a backup: a directory with the archive of pg_dump and its manifest.

The directory gets its name only when both files are complete and on disk: a backup that was
interrupted is a directory with the suffix `.partial`, which the next one of this name replaces.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.backup import clients
from deploy.stack.failure import StackError
from pipeline.backup.manifest import Manifest, from_json

ARCHIVE, MANIFEST = "ledger.dump", "manifest.json"
COPY = re.compile(rb"^COPY (?:public\.)?(\S+) \(")
END_OF_ROWS = b"\\.\n"


@contextmanager
def written_whole(directory: Path) -> Iterator[Path]:
    """A directory to write a backup into; after the block, it is renamed to `directory`.

    Errors: StackError if `directory` exists.
    """
    if directory.exists():
        raise StackError(f"{directory} exists. Name a new directory for each backup.")
    draft = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True, mode=0o700)
        yield draft
        for path in (*draft.iterdir(), draft):
            _sync(path)
        draft.rename(directory)
        _sync(directory.parent)
    except OSError as error:
        raise StackError(f"{directory} cannot be written ({error.strerror}).") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a backup. Errors: StackError without one; InvalidInput for another file."""
    path = directory / MANIFEST
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StackError(f"{path} cannot be read ({error.strerror}).") from error
    return from_json(content)


def require_unchanged(directory: Path, manifest: Manifest) -> None:
    """Compare the archive's size and SHA-256 with the manifest. Errors: StackError."""
    path = directory / manifest.archive
    try:
        same = path.stat().st_size == manifest.size_bytes and digest(path) == manifest.sha256
    except OSError as error:
        raise StackError(f"{path} cannot be read ({error.strerror}).") from error
    if not same:
        raise StackError(
            f"{path} is not the file that was written: its SHA-256 differs. Use another backup."
        )


def require_rows(directory: Path, manifest: Manifest) -> None:
    """Read the whole archive back and compare the rows of each table with the manifest.

    Errors: StackError that names the tables.
    """
    program = clients.find("pg_restore", server=manifest.postgres)
    argv = [str(program.path), "--data-only", "--file=-", str(directory / manifest.archive)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        rows = count_rows(reading.stdout)
        failure = reading.stderr.read()
    if reading.returncode != 0:
        raise StackError(f"pg_restore cannot read the archive: {clients.messages(failure)}")
    wrong = {
        name: (table.rows, rows[name])
        for name, table in manifest.tables.items()
        if table.rows != rows[name]
    }
    if wrong:
        listed = ", ".join(
            f"{name} {actual:,} of {rows:,}" for name, (rows, actual) in wrong.items()
        )
        raise StackError(f"The archive does not have all rows: {listed}. Use another backup.")


def count_rows(script: Iterator[bytes]) -> Counter[str]:
    """Rows of each table in the lines of a script of pg_restore."""
    rows = Counter[str]()
    table: str | None = None
    for line in script:
        if table is not None:
            if line == END_OF_ROWS:
                table = None
            else:
                rows[table] += 1
        elif begun := COPY.match(line):
            table = begun[1].decode()
    return rows


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
