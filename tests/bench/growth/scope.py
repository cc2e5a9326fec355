"""Growth of one scope: searches and adds in scopes of different sizes, interleaved in one run.

    python -m tests.bench.growth.scope --sizes 200 20000 --stores chroma pgvector

One stack for each vector store, with a hosted-style model and embedder (1,536 dimensions). Scopes
are filled by COPY and by direct writes to the index. The ratios compare each scope with the first
one. CPU is that of all processes of the stack. `recall` compares the first ten of the index with an
exact comparison: a hit counts if its cosine is one of the ten highest.

`drain`: searches of the first scope alone, and while 50 events a second are accepted and processed,
in turns. The adds arrive at random times (a Poisson process), and begin before the searches that
count, so that the writes of the index that they cause lie in the same phase.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import httpx
import numpy as np
import uvloop

from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.adapters.vectors_pgvector import Pgvector
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.engine import connect
from pipeline.memories.vectors import MemoryVectors
from pipeline.ports import Embedder, VectorRecord, VectorStore
from pipeline.settings import Settings
from pipeline.text import terms
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.large_scopes import ASK_EVERY_S
from tests.bench.engine import caught_up, cpu_s, idle
from tests.bench.hosted import hosted, provider, spent_ms
from tests.support.chaos_ledger import database_url, port_of
from tests.support.hosted_model import embedding
from tests.support.stack import Stack

Figures = dict[str, Any]
WORDS, ROUNDS, SEARCHES, ADDS = 5_000, 10, 10, 3
# Queries of a recall: with 50 its standard error is 0.006.
RECALLED = 400
OWN_ROWS: int = Settings.model_fields["own_collection_rows"].default
EMBEDDER = "openai/stand-in-1536"
AT_ONCE, EVENTS_PER_S = 500, 50
# Phases of the searches during adds, their length, and the time for which the adds run before.
DRAINS, DRAIN_S, AHEAD_S = 3, 30.0, 25.0
NEAR = 1e-4
GRAPHS = """
SELECT schemaname, indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'
"""
COLUMNS = (
    "id", "project_id", "lane_id", "user_id", "text", "text_hash", "terms", "attributed_to",
    "embedding", "embedder", "projected_version", "said_at", "valid_from",
)  # fmt: skip
SYLLABLES = ("ka", "lo", "mi", "ren", "tu", "vas", "po", "shi", "dor", "en", "gal", "bu")


def vocabulary() -> list[str]:
    """Pseudo-words, so that no stemmer joins many of them."""
    chance = random.Random(1)
    words = {"".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(2 * WORDS)}
    return sorted(words)[:WORDS]


class Texts:
    """Texts of about ten words, with the frequencies of a natural language."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = vocabulary()
        random.Random(2).shuffle(self._words)
        self._weights = np.cumsum([1 / (rank + 10) for rank in range(len(self._words))]).tolist()

    def words(self, count: int) -> list[str]:
        return self._chance.choices(self._words, cum_weights=self._weights, k=count)

    def statement(self, number: int) -> str:
        first, *rest = self.words(7)
        return f"User likes {first} with {' '.join(rest)} since visit {number}"

    def question(self, number: int) -> str:
        first, *rest = self.words(3)
        return f"Which {first} does the user like with {' '.join(rest)}, ask {number}?"


class Filled:
    """A scope with its memories, and their vectors for the exact comparison."""

    def __init__(self, project_id: UUID, size: int) -> None:
        self.size = size
        self.scope = Scope(ProjectId(project_id), user_id=f"scope-{size}")
        self.vectors = np.empty((size, 1536), np.float32)
        self.ids: list[UUID] = []

    def rows(self, now: datetime) -> Iterator[tuple[Any, ...]]:
        texts = Texts(seed=self.size)
        for number in range(self.size):
            text = texts.statement(number)
            vector = embedding(text)
            self.vectors[number] = vector
            self.ids.append(uuid5(self.scope.lane_id, str(number)))
            yield (
                self.ids[-1], self.scope.project_id, self.scope.lane_id, self.scope.user_id, text,
                hashlib.sha256(text.encode()).digest(), terms.terms(text), "user",
                to_bytes(vector), EMBEDDER, 1, now, now,
            )  # fmt: skip

    def records(self) -> Iterator[list[VectorRecord]]:
        payload: dict[str, str | int] = {
            "project_id": str(self.scope.project_id),
            "lane_id": str(self.scope.lane_id),
            "user_id": str(self.scope.user_id),
            "version": 1,
        }
        for start in range(0, self.size, AT_ONCE):
            rows = range(start, min(start + AT_ONCE, self.size))
            yield [VectorRecord(self.ids[row], self.vectors[row], payload) for row in rows]

    def recall(self, query: np.ndarray, ids: Sequence[UUID]) -> float:
        """Share of the ten nearest, apart from equal cosines."""
        cosines = self.vectors @ query
        tenth = np.partition(cosines, -10)[-10]
        place = {key: row for row, key in enumerate(self.ids)}
        near = [key for key in ids[:10] if key in place and cosines[place[key]] >= tenth - NEAR]
        return len(near) / 10


class Remembered(Embedder):
    """Embedder that only names the index: the vectors are given."""

    name = EMBEDDER

    async def dimensions(self) -> int:
        return 1536

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [embedding(text) for text in texts]

    async def close(self) -> None: ...


@asynccontextmanager
async def index_of(running: Stack, name: str) -> AsyncIterator[tuple[VectorIndex, VectorStore]]:
    """The memories' index of a stack, and its store."""
    engine = connect(database_url(running).replace("://", "+asyncpg://"), pool_size=4)
    store: VectorStore = (
        ChromaVectors(f"http://127.0.0.1:{port_of(running, 'chroma')}")
        if name == "chroma"
        else Pgvector(engine)
    )
    buckets = 64 if name == "chroma" else 1
    source = MemoryVectors(engine)
    yield VectorIndex(store, source, Remembered(), buckets=buckets, own_rows=OWN_ROWS), store
    await store.close()
    await engine.dispose()


async def fill(running: Stack, name: str, sizes: Sequence[int]) -> list[Filled]:
    """Write scopes of these sizes to the ledger and the index, unless they are there."""
    connection = await asyncpg.connect(database_url(running))
    project_id = await connection.fetchval("SELECT id FROM projects ORDER BY created_at LIMIT 1")
    scopes = [Filled(project_id, size) for size in sizes]
    async with index_of(running, name) as (index, store):
        for filled in scopes:
            now = await connection.fetchval("SELECT now()")
            rows, scope = list(filled.rows(now)), filled.scope
            if await connection.fetchval("SELECT true FROM lanes WHERE id = $1", scope.lane_id):
                continue
            lane = [(scope.lane_id, project_id, scope.user_id, "IDLE")]
            columns = ("id", "project_id", "user_id", "state")
            await connection.copy_records_to_table("lanes", records=lane, columns=columns)
            await connection.copy_records_to_table("memories", records=rows, columns=COLUMNS)
            collection = index.collection(scope)
            await store.create_col(collection, dimensions=1536, embedder=EMBEDDER)
            await index.source.collections.note(collection)
            async with without_graphs(connection):
                for records in filled.records():
                    await store.insert(collection, records)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()
    return scopes


@asynccontextmanager
async def without_graphs(connection: asyncpg.Connection[Any]) -> AsyncIterator[None]:
    """Drop pgvector's graphs, and build them again in one pass: far faster than row by row."""
    rows = await connection.fetch(GRAPHS)
    for row in rows:
        await connection.execute(f'DROP INDEX {row["schemaname"]}."{row["indexname"]}"')
    yield
    await connection.execute("SET maintenance_work_mem = '2GB'")
    for row in rows:
        await connection.execute(row["indexdef"], timeout=3_600)


async def search(client: httpx.AsyncClient, filled: Filled, query: str) -> float:
    """Search once; return the milliseconds."""
    body = {"query": query, "filters": {"user_id": filled.scope.user_id}, "top_k": 10}
    began = time.perf_counter()
    answer = await client.post("/v3/memories/search/", json=body)
    took_ms = 1000 * (time.perf_counter() - began)
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"], query
    return took_ms


async def own_collections(running: Stack, scopes: Sequence[Filled]) -> None:
    """Search the large scopes until their own collections are complete, and in use."""
    connection = await asyncpg.connect(database_url(running))
    large = [filled for filled in scopes if filled.size >= OWN_ROWS]
    count = "SELECT count(*) FROM own_collections WHERE state = 'SERVED'"
    async with running.client() as client:
        while await connection.fetchval(count) < len(large):
            for filled in large:
                await search(client.http, filled, "Which one?")
            await asyncio.sleep(ASK_EVERY_S / 10)
    await connection.close()
    await asyncio.sleep(ASK_EVERY_S)  # until every process reads the states again


async def add(client: httpx.AsyncClient, filled: Filled, text: str) -> float:
    """Add a message and wait for the end of its event; return the milliseconds."""
    messages = [{"role": "user", "content": text}]
    began = time.perf_counter()
    body = {"messages": messages, "user_id": filled.scope.user_id}
    answer = await client.post("/v3/memories/add/", json=body)
    path = f"/v1/event/{answer.json()['event_id']}/"
    event = (await client.get(path, params={"wait": 30})).json()
    assert event["status"] == "SUCCEEDED", event
    return 1000 * (time.perf_counter() - began)


async def grown(running: Stack, scopes: Sequence[Filled], *, seed: int) -> Figures:
    """Milliseconds and CPU of a search and an add in each scope, and the ratios to the first."""
    texts = Texts(seed)
    took: dict[tuple[str, int], list[float]] = defaultdict(list)
    spent: dict[tuple[str, int], list[Figures]] = defaultdict(list)
    async with running.client() as client:
        for turn in range(ROUNDS + 1):
            for filled in scopes:
                for kind, count in (("search", SEARCHES), ("add", ADDS)):
                    before = cpu_s(running)
                    ms = [
                        await search(client.http, filled, texts.question(turn))
                        if kind == "search"
                        else await add(client.http, filled, texts.statement(seed))
                        for _ in range(count)
                    ]
                    if kind == "add":
                        await idle(running)
                    if turn:  # the first round prepares statements and caches
                        took[kind, filled.size] += ms
                        spent[kind, filled.size].append(spent_ms(before, cpu_s(running), count))
    return {kind: _figures(kind, scopes, took, spent) for kind in ("search", "add")}


def _figures(kind: str, scopes: Sequence[Filled], took: Any, spent: Any) -> Figures:
    figures: Figures = {}
    for size in (filled.size for filled in scopes):
        names = sorted({name for shares in spent[kind, size] for name in shares})
        cpu = {
            name: round(float(np.mean([shares.get(name, 0.0) for shares in spent[kind, size]])), 1)
            for name in names
        }
        p50, p95 = np.percentile(took[kind, size], (50, 95))
        figures[str(size)] = {"p50_ms": round(p50, 1), "p95_ms": round(p95, 1), "cpu_ms": cpu}
    first = figures[str(scopes[0].size)]
    for each in figures.values():
        each["p50_ratio"] = round(each["p50_ms"] / first["p50_ms"], 2)
        each["cpu_ratio"] = round(each["cpu_ms"]["total"] / first["cpu_ms"]["total"], 2)
    return figures


async def recalled(running: Stack, name: str, scopes: Sequence[Filled]) -> Figures:
    """Mean recall at 10 of the index in each scope."""
    texts = Texts(seed=7)
    figures = {}
    async with index_of(running, name) as (index, _):
        for filled in scopes:
            shares = []
            where = {
                "project_id": str(filled.scope.project_id),
                "user_id": str(filled.scope.user_id),
            }
            for number in range(RECALLED):
                query = embedding(texts.question(number))
                near = await index.nearest(where, query, limit=200)
                shares.append(filled.recall(query, [hit.id for hit in near.hits]))
            figures[str(filled.size)] = round(float(np.mean(shares)), 3)
    return figures


async def drained(running: Stack, filled: Filled) -> Figures:
    """Searches alone, and while EVENTS_PER_S events a second are processed, in turns."""
    texts = Texts(seed=11)
    async with running.client() as client:

        async def searches(until: float) -> list[float]:
            took: list[float] = []
            while time.perf_counter() < until:
                took.append(await search(client.http, filled, texts.question(len(took))))
                await asyncio.sleep(0.05)
            return took

        async def adds(until: float) -> None:
            """Post adds at random times that do not wait for the answers, as many users do."""
            times, due = random.Random(13), time.perf_counter()
            async with asyncio.TaskGroup() as posts:
                for number in itertools.count():
                    due += times.expovariate(EVENTS_PER_S)
                    if due > until:
                        break
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                    message = {"role": "user", "content": texts.statement(number)}
                    body = {"messages": [message], "user_id": f"drain-{number % 400}"}
                    posts.create_task(client.http.post("/v3/memories/add/", json=body))

        quiet: list[float] = []
        busy: list[float] = []
        await searches(time.perf_counter() + AHEAD_S / 5)  # prepares statements and caches
        for _ in range(DRAINS):
            quiet += await searches(time.perf_counter() + DRAIN_S)
            until = time.perf_counter() + AHEAD_S + DRAIN_S
            adding = asyncio.create_task(adds(until))
            await searches(until - DRAIN_S)
            busy += await searches(until)
            await adding
            await idle(running)
            await caught_up(running)
    (q50, q95), (b50, b95) = np.percentile(quiet, (50, 95)), np.percentile(busy, (50, 95))
    return {
        "quiet_ms": {"p50": round(q50, 1), "p95": round(q95, 1)},
        "busy_ms": {"p50": round(b50, 1), "p95": round(b95, 1)},
        "p50_ratio": round(b50 / q50, 2),
        "p95_ratio": round(b95 / q95, 2),
    }


async def measure(
    name: str, sizes: Sequence[int], folder: Path, parts: Sequence[str], *, seed: int
) -> Figures:
    """All figures of one vector store. A folder with a stack's data is used again."""
    with provider() as base_url:
        # The stand-in has another port each time: a changed setting.
        running = Stack(folder / name, hosted(base_url, MEMLANE_VECTORS=name), confirmed=True)
        figures: Figures = {}
        async with running:
            scopes = await fill(running, name, sizes)
            await caught_up(running)
            await own_collections(running, scopes)
            if "recall" in parts:
                figures["recall"] = await recalled(running, name, scopes)
            if "cost" in parts:
                figures |= await grown(running, scopes, seed=seed)
            if "drain" in parts:
                figures["drain"] = await drained(running, scopes[0])
    return figures


async def main(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        for name in given.stores:
            seed = time.time_ns() % 10**9
            figures = await measure(name, given.sizes, folder, given.parts, seed=seed)
            print(json.dumps({name: figures}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.bench.growth.scope", description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 20_000])
    stores, parts = ["chroma", "pgvector"], ["recall", "cost", "drain"]
    parser.add_argument("--stores", nargs="+", default=stores, choices=stores)
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--data", type=Path, help="keep the stacks' data in this folder")
    uvloop.run(main(parser.parse_args()))
