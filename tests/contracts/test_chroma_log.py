"""Chroma's write-ahead log: one table of all collections, which each write reads."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from uuid import UUID, uuid4

import httpx

from deploy.stack.servers import Chroma as ChromaServer
from pipeline.adapters.vectors_chroma import LOGGED, ROOT
from tests.contracts.test_vector_store import EMBEDDER, connected, record


def logged_rows(server: ChromaServer, collection: str) -> int:
    """Rows of a collection, by Chroma's id, in the log."""
    file = server.layout.chroma / "chroma.sqlite3"
    count = "SELECT count(*) FROM embeddings_queue WHERE topic LIKE '%/' || ?"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        [(rows,)] = database.execute(count, [collection]).fetchall()
    return int(rows)


async def test_the_log_drops_the_rows_of_small_writes(chroma: ChromaServer) -> None:
    """Else each write reads all rows of all collections, up to a thousand of each."""
    name = f"memories-{uuid4().hex}"
    async with httpx.AsyncClient() as http, connected(chroma.url) as client:
        await client.create_col(name, dimensions=3, embedder=EMBEDDER)
        made = (await http.get(f"{chroma.url}{ROOT}/{name}")).json()
        for number in range(2 * LOGGED + 10):
            await client.insert(name, [record(UUID(int=number + 1))])
        assert 0 < logged_rows(chroma, made["id"]) <= LOGGED
        info = await client.col_info(name)
        assert info is not None
        assert info.count == 2 * LOGGED + 10
        await client.delete_col(name)


async def test_a_collection_of_an_earlier_release_takes_the_same_limit(
    chroma: ChromaServer,
) -> None:
    name = f"memories-{uuid4().hex}"
    collections = f"{chroma.url}{ROOT}"
    earlier = {
        "name": name,
        "metadata": {"embedder": EMBEDDER, "dimensions": 3},
        "configuration": {"hnsw": {"space": "cosine"}},
    }
    async with httpx.AsyncClient() as http, connected(chroma.url) as client:
        assert (await http.post(collections, json=earlier)).is_success
        await client.create_col(name, dimensions=3, embedder=EMBEDDER)
        stored = (await http.get(f"{collections}/{name}")).json()
        assert stored["configuration_json"]["hnsw"]["sync_threshold"] == LOGGED
        assert stored["metadata"]["embedder"] == EMBEDDER
        await client.delete_col(name)
