"""Latency of the dense part of a search: `python -m tests.bench.search_latency 1000 10000 …`

Memories of 1,000 users with generated vectors; the question's vector is given. Queries go through
VectorIndex, which includes the rows that the index does not have yet. Client and server share the
machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psutil
import uvloop
from sqlalchemy import text

from deploy.stack.servers import Chroma as ChromaServer
from deploy.stack.servers import Postgres
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.adapters.vectors_pgvector import Pgvector, _table, statement
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector
from pipeline.ledger.engine import connect
from pipeline.memories.vectors import MemoryVectors
from pipeline.migrate import migrate
from pipeline.ports import Embedder, VectorRecord, VectorStore
from pipeline.vector_index.index import VectorIndex

USERS, DIMENSIONS, LIMIT = 1_000, 384, 200
BATCH, CLIENTS, QUESTIONS = 500, (1, 16), 400
KINDS = ("one_user", "whole_project")
BUCKETS = {"chroma": 64, "pgvector": 1}
PROJECT = ProjectId(UUID(int=1))
RESULTS = Path("bench-results")


class NoEmbedder(Embedder):
    """Embedder that only names the index: the vectors are generated."""

    name = "bench/generated"

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise NotImplementedError

    async def close(self) -> None: ...


class Tables(Pgvector):
    """Pgvector that builds the graph after the load, which is faster than row by row."""

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        await super().create_col(name, dimensions=dimensions, embedder=embedder)
        await self._execute(f"DROP INDEX {_table(name)}_near")

    async def make_graph(self, name: str) -> None:
        index = _table(name).rpartition(".")[2]
        parts = {"table": _table(name), "index": index, "dimensions": str(DIMENSIONS)}
        await self._execute(statement("make_graph", **parts).text)

    async def _execute(self, words: str) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(text(words))


def vectors(count: int, seed: int) -> Iterator[np.ndarray]:
    """Unit vectors in batches, each near one of 500 topics."""
    topics = np.random.default_rng(0).normal(size=(500, DIMENSIONS)).astype(np.float32)
    chance = np.random.default_rng(seed)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        near = topics[chance.integers(0, len(topics), size)]
        drawn = near + chance.normal(size=(size, DIMENSIONS)).astype(np.float32)
        yield drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


async def fill(store: VectorStore, index: VectorIndex, count: int) -> float:
    """Insert `count` memories, spread evenly over the users; return the rate per second."""
    by_collection: dict[str, list[VectorRecord]] = defaultdict(list)
    number, began = 0, time.perf_counter()

    users = [Scope(PROJECT, user_id=f"user-{number}") for number in range(USERS)]
    names = sorted({index.collection(scope) for scope in users})
    for name in names:
        await store.create_col(name, dimensions=DIMENSIONS, embedder=NoEmbedder.name)
    for drawn in vectors(count, seed=1):
        for vector in drawn:
            scope = users[number % USERS]
            payload: dict[str, str | int] = {
                "project_id": str(PROJECT),
                "user_id": str(scope.user_id),
                "lane_id": str(scope.lane_id),
                "version": 1,
            }
            name = index.collection(scope)
            by_collection[name].append(VectorRecord(uuid4(), vector.tolist(), payload))
            number += 1
            if len(by_collection[name]) == BATCH:
                await store.insert(name, by_collection.pop(name))
    for name, records in by_collection.items():
        await store.insert(name, records)
    if isinstance(store, Tables):
        for name in names:
            await store.make_graph(name)
    return count / (time.perf_counter() - began)


async def ask(index: VectorIndex, *, clients: int, one_user: bool) -> dict[str, float]:
    """Percentiles in ms of `clients` closed-loop clients."""
    drawn = np.concatenate(list(vectors(QUESTIONS, seed=clients))).tolist()
    questions = iter(enumerate(drawn))
    took_ms: list[float] = []

    async def client() -> None:
        for number, vector in questions:
            where = {"project_id": str(PROJECT)}
            if one_user:
                where["user_id"] = f"user-{number * 7 % USERS}"
            began = time.perf_counter()
            near = await index.nearest(where, vector, limit=LIMIT)
            took_ms.append((time.perf_counter() - began) * 1000)
            assert near.hits

    began, before_s = time.perf_counter(), cpu_s()
    await asyncio.gather(*(client() for _ in range(clients)))
    rate = QUESTIONS / (time.perf_counter() - began)
    p50, p95 = np.percentile(took_ms, (50, 95))
    return {
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "per_s": round(rate),
        "cpu_ms": round((cpu_s() - before_s) * 1000 / QUESTIONS, 1),
    }


def cpu_s() -> float:
    """CPU seconds of this process and the servers it started."""
    us = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (us, *us.children(recursive=True)))


async def measure(
    store: VectorStore, memories: MemoryVectors, count: int, kinds: Sequence[str]
) -> dict[str, Any]:
    index = VectorIndex(store, memories, NoEmbedder(), buckets=BUCKETS[store.name])
    report: dict[str, Any] = {"inserts_per_s": round(await fill(store, index, count))}
    for kind in kinds:
        one_user = kind == "one_user"
        await ask(index, clients=4, one_user=one_user)  # warm-up
        for clients in CLIENTS:
            figures = await ask(index, clients=clients, one_user=one_user)
            report[f"{kind}_{clients}_clients"] = figures
    await store.reset()
    return report


@asynccontextmanager
async def servers(folder: Path, names: Sequence[str]) -> AsyncIterator[Mapping[str, Any]]:
    """The named stores, and the memories of an empty ledger."""
    with Postgres(folder / "postgres") as postgres:
        engine = connect(postgres.url, pool_size=16)
        await migrate(engine)
        stores: dict[str, Any] = {"memories": MemoryVectors(engine)}
        if "pgvector" in names:
            stores["pgvector"] = Tables(engine)
        if "chroma" not in names:
            yield stores
        else:
            with ChromaServer(folder / "chroma") as server:
                yield stores | {"chroma": ChromaVectors(server.url)}
        await engine.dispose()


async def main(sizes: Sequence[int], names: Sequence[str], kinds: Sequence[str]) -> None:
    report: dict[str, Any] = {"cores": os.cpu_count(), "dimensions": DIMENSIONS, "limit": LIMIT}
    with tempfile.TemporaryDirectory() as folder:
        async with servers(Path(folder), names) as stores:
            for name in names:
                for size in sizes:
                    figures = await measure(stores[name], stores["memories"], size, kinds)
                    report[f"{name}_{size}"] = figures
                    print(f"{name}_{size}", json.dumps(figures), flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "search_latency.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.bench.search_latency", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--stores", nargs="*", default=["pgvector", "chroma"], choices=BUCKETS)
    # In Chroma, a search of a whole project is one search per bucket, which takes longer.
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    given = parser.parse_args()
    uvloop.run(main(given.sizes, given.stores, given.kinds))
