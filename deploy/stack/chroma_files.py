"""Files of a Chroma server: its database, and folders of deleted collections.

Chroma leaves these folders on the disk. Source: https://github.com/chroma-core/chroma/issues/5259

`python -m deploy.stack.chroma_files DIRECTORY` prepares the files before a Chroma server starts in
a container. It ends with 0 also if they cannot be prepared: the server works without.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from uuid import UUID

log = logging.getLogger(__name__)

DATABASE = "chroma.sqlite3"
# Minimum age of a folder: a new one may be older than its row.
OLDER_THAN_S = 60.0
LOG_TABLE = "SELECT true FROM sqlite_master WHERE name = 'embeddings_queue'"
LOG_INDEX = "CREATE INDEX IF NOT EXISTS memlane_log ON embeddings_queue (topic, seq_id)"
# Longest wait for a commit of the server.
LOCKED_S = 1.0


def remove_deleted(data: Path, *, older_than_s: float = OLDER_THAN_S) -> int:
    """Delete the folders of vectors that Chroma's database does not know. Returns their number.

    `data`: Chroma's data directory; the server may run. A folder's name is the id of its segment.
    """
    before = time.time() - older_than_s
    try:
        folders = [
            folder
            for folder in data.iterdir()
            if folder.is_dir() and _is_id(folder.name) and folder.stat().st_mtime <= before
        ]
        known = _segments(data / DATABASE) if folders else set()
    except (OSError, sqlite3.Error) as error:  # no data yet, or the database is busy
        log.debug("chroma_files_unread error=%s", type(error).__name__)
        return 0
    deleted = [folder for folder in folders if folder.name not in known]
    for folder in deleted:
        shutil.rmtree(folder, ignore_errors=True)
    if deleted:
        log.info("chroma_files_removed folders=%d", len(deleted))
    return len(deleted)


def let_reads_pass_writes(data: Path) -> None:
    """Give Chroma's database a write-ahead log of SQLite; call it while the server is down.

    Beside a server that uses the rollback journal it waits for five seconds, and may do nothing.

    With SQLite's default, the rollback journal, a search waits for each commit: p99 of a search
    beside 90 records a second 40 ms, with a write-ahead log 12. The mode is stored in the file.
    """
    try:
        with closing(sqlite3.connect(data / DATABASE)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:  # the server works with either
        log.warning("chroma_journal_unchanged error=%s", type(error).__name__)


def index_log(data: Path) -> None:
    """Give Chroma's own write-ahead log an index on the collection; the server may run.

    The log is one table of all collections. A write and a search read the rows of one collection;
    without the index they read those of all. CPU of a record in 128 collections of 70 records:
    1.9 ms, with the index 1.3; of a search 12 and 7.
    """
    if not (data / DATABASE).exists():
        return
    try:
        with closing(sqlite3.connect(data / DATABASE, timeout=LOCKED_S)) as connection:
            if connection.execute(LOG_TABLE).fetchone():  # the server makes it at its first start
                connection.execute(LOG_INDEX)
    except sqlite3.Error as error:  # the server works without it
        log.warning("chroma_log_unindexed error=%s", type(error).__name__)


def prepare(data: Path) -> None:
    """Prepare the files before the server starts."""
    let_reads_pass_writes(data)
    index_log(data)
    remove_deleted(data)


def _segments(database: Path) -> set[str]:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return {key for (key,) in connection.execute("SELECT id FROM segments")}


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    prepare(Path(sys.argv[1]))
