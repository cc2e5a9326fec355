"""The database of a real Chroma server, and its folders of deleted collections."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from deploy.stack.chroma_files import DATABASE, remove_deleted
from deploy.stack.servers import Chroma
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.domain.vectors import as_vector
from pipeline.ports import VectorRecord
from tests.support.compose import services

# More changes than Chroma takes before it writes the folder of a collection.
WRITTEN = 1_001
KEPT, DELETED = f"memories-{uuid4().hex}", f"memories-{uuid4().hex}"


async def fill(client: ChromaVectors, name: str) -> None:
    await client.create_col(name, dimensions=3, embedder="fake")
    records = [
        VectorRecord(UUID(int=n), as_vector((1.0, n / WRITTEN, 0.0)), {"version": 1})
        for n in range(1, WRITTEN + 1)
    ]
    for start in range(0, WRITTEN, 200):
        await client.insert(name, records[start : start + 200])


def folders(data: Path) -> set[Path]:
    return {folder for folder in data.iterdir() if folder.is_dir()}


async def test_folders_of_deleted_collections_are_removed_while_chroma_runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("stack")
    data = root / "chroma"
    with Chroma(root) as server:
        client = ChromaVectors(server.url)
        await fill(client, KEPT)
        of_kept = folders(data)
        await fill(client, DELETED)
        assert len(of_kept) == 1
        assert len(folders(data)) == 2
        assert remove_deleted(data, older_than_s=0) == 0
        await client.delete_col(DELETED)
        assert remove_deleted(data) == 0  # too young
        assert remove_deleted(data, older_than_s=0) == 1
        assert folders(data) == of_kept
        [hits] = await client.search(KEPT, [as_vector((1.0, 0.0, 0.0))], limit=1, where={})
        assert [hit.id for hit in hits] == [UUID(int=1)]
        server.kill()
        server.start()
        info = await client.col_info(KEPT)
        assert info is not None
        assert info.count == WRITTEN
        await client.close()


def test_other_files_and_a_folder_without_a_database_stay(tmp_path: Path) -> None:
    assert remove_deleted(tmp_path / "missing") == 0
    (tmp_path / str(uuid4())).mkdir()
    (tmp_path / "notes").mkdir()
    assert remove_deleted(tmp_path, older_than_s=0) == 0
    assert len(folders(tmp_path)) == 2


def journal_mode(data: Path) -> str:
    with closing(sqlite3.connect(data / DATABASE)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


@pytest.mark.parametrize("before", [None, "DELETE"])
async def test_searches_do_not_wait_for_commits(
    tmp_path_factory: pytest.TempPathFactory, before: str | None
) -> None:
    """Also in a database of an earlier release."""
    root = tmp_path_factory.mktemp("stack")
    data = root / "chroma"
    with Chroma(root) as server:
        client = ChromaVectors(server.url)
        await fill(client, KEPT)
        server.kill()
        if before:
            with closing(sqlite3.connect(data / DATABASE)) as connection:
                connection.execute(f"PRAGMA journal_mode = {before}")
            assert journal_mode(data) == before.lower()
            server.start()
            server.kill()
        assert journal_mode(data) == "wal"
        server.start()
        info = await client.col_info(KEPT)
        assert info is not None
        assert info.count == WRITTEN
        await client.close()


# Chroma's statement after it has saved a collection; its reads have the same conditions.
# Source: the text of chromadb_rust_bindings 1.5.9.
LOG_OF_ONE = "DELETE FROM embeddings_queue WHERE topic = ? AND seq_id < ?"


def plan_of_log(data: Path) -> str:
    """SQLite's plan to find the log of one collection."""
    with closing(sqlite3.connect(data / DATABASE)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {LOG_OF_ONE}", ("topic", 0))
        return " ".join(row[-1] for row in rows)


class ContainerChroma(Chroma):
    """A server as in a container: Memlane does not prepare its files."""

    def prepare(self) -> None:
        self._data.mkdir(mode=0o700, exist_ok=True)


def prepare_files(data: Path) -> None:
    """Run the command of the service `chroma-files`."""
    [*_, module, folder] = services()["chroma-files"].command
    assert folder == "/data"
    subprocess.run([sys.executable, "-m", module, str(data)], check=True, timeout=60)


@pytest.mark.parametrize("is_running", [False, True], ids=["stopped", "running"])
async def test_the_files_of_a_container_are_prepared(
    tmp_path_factory: pytest.TempPathFactory, is_running: bool
) -> None:
    """Also those of an earlier release, and without harm while Chroma still runs."""
    root = tmp_path_factory.mktemp("stack")
    data = root / "chroma"
    with ContainerChroma(root) as server:
        client = ChromaVectors(server.url)
        await fill(client, KEPT)
        if is_running:
            prepare_files(data)
            [hits] = await client.search(KEPT, [as_vector((1.0, 0.0, 0.0))], limit=1, where={})
            assert [hit.id for hit in hits] == [UUID(int=1)]
            await client.delete(KEPT, [UUID(int=1)])
        else:
            server.kill()
            assert journal_mode(data) == "delete"
        server.kill()
        prepare_files(data)
        assert journal_mode(data) == "wal"
        assert "INDEX memlane_log" in plan_of_log(data)
        server.start()
        info = await client.col_info(KEPT)
        assert info is not None
        assert info.count == WRITTEN - is_running
        await client.close()


def test_files_are_prepared_before_the_first_start(tmp_path: Path) -> None:
    prepare_files(tmp_path)
    assert journal_mode(tmp_path) == "wal"
    prepare_files(tmp_path / "missing")  # the server starts all the same


async def test_a_write_reads_the_log_of_its_own_collection(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Also in a database of an earlier release."""
    root = tmp_path_factory.mktemp("stack")
    data = root / "chroma"
    with Chroma(root) as server:
        assert "INDEX memlane_log (topic=? AND seq_id<?)" in plan_of_log(data)
        client = ChromaVectors(server.url)
        await fill(client, KEPT)
        await client.close()
        server.kill()
        with closing(sqlite3.connect(data / DATABASE)) as connection:
            connection.execute("DROP INDEX memlane_log")
        server.start()
        assert "INDEX memlane_log (topic=? AND seq_id<?)" in plan_of_log(data)
        client = ChromaVectors(server.url)
        await fill(client, DELETED)
        for name in (KEPT, DELETED):
            info = await client.col_info(name)
            assert info is not None
            assert info.count == WRITTEN
        await client.close()
