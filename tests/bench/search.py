"""Latency and CPU of a search at 1,000 to 100,000 memories: `python -m tests.bench.search`.

All steps except the query's embedding, in processes beside the servers, with the same limit on
concurrent searches as the API processes of the local stack. The memories are synthetic: random
vectors, words by Zipf's law, one turn each, written directly to the ledger and the indexes. The
search of one user never walks pgvector's graph, so no graph is built. JSON on stdout and in
bench-results/.

    python -m tests.bench.search --vectors pgvector chroma --sizes 1000 10000 100000 1000000
    python -m tests.bench.search --vectors pgvector --sizes 10000 --users 1
    python -m tests.bench.search --sizes 100000 --processes 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import uvloop
from sqlalchemy import Table, text

from deploy.stack.programs import searches_at_once
from deploy.stack.servers import Chroma, Postgres
from pipeline import bootstrap, collector
from pipeline.adapters.embedder_minilm import DIMENSIONS
from pipeline.bootstrap import Stores
from pipeline.domain.filters import parse
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector
from pipeline.ledger.tables import events, lanes, memories, messages, turn_vectors
from pipeline.migrate import migrate
from pipeline.search import service as search
from pipeline.search.concurrency import ConcurrencyLimit
from pipeline.search.query import Query
from pipeline.settings import Settings
from pipeline.text import terms as lexical
from pipeline.text.equality import text_hash
from pipeline.vector_index.index import VectorIndex
from tests.bench.search_latency import Tables

SIZES = (1_000, 10_000, 100_000)
BACKENDS = ("pgvector", "chroma")
USERS = 1_000
WORDS, TEXT_WORDS, QUERY_WORDS = 20_000, 12, 6
SYLLABLES = [first + two for first in "bdfgklmnprtvz" for two in ("a", "i", "o", "un", "ar")]
CLIENTS = (1, 16)
QUERIES, WARM = 1_000, 50
PAGE = 2_000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class RandomVectors:
    """Embedder with random vectors, which costs almost no CPU."""

    name = "local/minilm"

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.random() for _ in texts]

    async def close(self) -> None: ...

    def random(self) -> Vector:
        return np.asarray(self.array(), np.float32)

    def array(self) -> np.ndarray:
        values = self._chance.standard_normal(DIMENSIONS, dtype=np.float32)
        return values / np.linalg.norm(values)


class Speech:
    """Random sentences: words with Zipf's frequencies, a fifth of them compounds."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._words = [_word(number) for number in range(WORDS)]
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(WORDS)))

    def sentence(self, length: int) -> str:
        chosen = self._chance.choices(self._words, cum_weights=self._weights, k=length)
        return " ".join(chosen)


def _word(number: int) -> str:
    whole, compound = divmod(number, 5)
    return _sound(number) if compound else _sound(whole) + _sound(number)


def _sound(number: int) -> str:
    """Syllables of a word; rarer words have more."""
    rest, last = divmod(number, len(SYLLABLES))
    return (_sound(rest) if rest else "") + SYLLABLES[last]


async def fill(
    stores: Stores,
    project: ProjectId,
    users: int,
    count: int,
    speech: Speech,
    vectors: RandomVectors,
) -> None:
    """Insert `count` more memories with their turns, distributed over the users in rotation."""
    for start in range(0, count, PAGE):
        size = min(PAGE, count - start)
        rows = [_row(project, (start + at) % users, speech, vectors) for at in range(size)]
        for table in (events, messages, turn_vectors, memories):
            await _copy(stores, table, [row[table.name] for row in rows])
        for index in stores.indexes:
            while await index.catch_up(limit=PAGE):
                pass


async def _copy(stores: Stores, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    async with stores.ledger.engine.begin() as connection:
        raw = (await connection.get_raw_connection()).driver_connection
        assert raw is not None
        records = [tuple(row.values()) for row in rows]
        await raw.copy_records_to_table(table.name, records=records, columns=list(rows[0]))


def _row(project: ProjectId, user: int, speech: Speech, vectors: RandomVectors) -> dict[str, Any]:
    sentence, event_id = speech.sentence(TEXT_WORDS), uuid4()
    lane_id = Scope(project, str(user)).lane_id
    terms, seq = lexical.terms(sentence), random.getrandbits(62)
    said_at = BEGAN + timedelta(seconds=seq % 20_000_000)
    return {
        "events": {
            "id": event_id,
            "project_id": project,
            "lane_id": lane_id,
            "seq": seq,
            "status": "SUCCEEDED",
            "options": '{"infer": true, "metadata": {}}',
            "tokens": TEXT_WORDS,
            "completed_at": said_at,
        },
        "messages": {
            "lane_id": lane_id,
            "seq": seq,
            "ordinal": 0,
            "role": "user",
            "content": sentence,
            "terms": terms,
            "said_at": said_at,
        },
        "turn_vectors": {
            "event_id": event_id,
            "ordinal": 0,
            "lane_id": lane_id,
            "embedding": vectors.array().tobytes(),
            "embedder": vectors.name,
        },
        "memories": {
            "id": uuid4(),
            "project_id": project,
            "lane_id": lane_id,
            "user_id": str(user),
            "text": sentence,
            "text_hash": text_hash(sentence),
            "terms": terms,
            "attributed_to": "user",
            "embedding": vectors.array().tobytes(),
            "embedder": vectors.name,
            "event_id": event_id,
            "message_ordinal": 0,
            "valid_from": said_at,
        },
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """Load of one process: closed-loop clients and their number of queries."""

    settings: Settings
    project: ProjectId
    users: int
    clients: int
    queries: int
    turns: bool


def ask(job: Asked) -> tuple[list[float], float, float]:
    """Milliseconds of each search as its caller sees it, total seconds, CPU seconds."""
    return uvloop.run(_ask(job))


async def _ask(job: Asked) -> tuple[list[float], float, float]:
    speech = Speech(random.Random(os.getpid()))
    took: list[float] = []
    left = iter(range(job.queries + WARM))
    limits = search.SearchLimits(ConcurrencyLimit(searches_at_once(job.settings)))
    async with opened(job.settings) as stores:

        async def client() -> None:
            for _ in left:
                where = parse({"user_id": str(random.randrange(job.users))})
                text = speech.sentence(QUERY_WORDS)
                query = Query(text, where, 10, 0.0, turns=job.turns)
                began = time.perf_counter()
                await search.search(
                    job.project,
                    query,
                    ledger=stores.ledger,
                    embedder=stores.embedder,
                    index=stores.index,
                    turns=stores.turns,
                    limits=limits,
                )
                took.append(1000 * (time.perf_counter() - began))

        collector.spare_loaded()
        began, cpu_began = time.perf_counter(), time.process_time()
        await asyncio.gather(*(client() for _ in range(job.clients)))
        return took[WARM:], time.perf_counter() - began, time.process_time() - cpu_began


def measure(processes: Executor, job: Asked) -> dict[str, float]:
    """Divide the clients among the processes; `cpu_ms` counts these processes only."""
    count = min(job.settings.api_processes, job.clients)
    share = replace(job, clients=job.clients // count, queries=job.queries // count)
    done = list(processes.map(ask, [share] * count))
    took = sorted(ms for times, _, _ in done for ms in times)
    return {
        "p50_ms": round(statistics.median(took), 1),
        "p95_ms": round(took[int(0.95 * len(took))], 1),
        "per_s": round(sum((share.queries + WARM) / passed_s for _, passed_s, _ in done)),
        "cpu_ms": round(
            1000 * sum(cpu_s for _, _, cpu_s in done) / (count * (share.queries + WARM)), 1
        ),
    }


async def run(settings: Settings, sizes: Sequence[int], users: int) -> dict[str, Any]:
    speech, vectors = Speech(random.Random(7)), RandomVectors()
    report: dict[str, Any] = {}
    stored = 0
    spawned = ProcessPoolExecutor(settings.api_processes, mp_context=get_context("spawn"))
    async with opened(settings) as stores:
        await migrate(stores.ledger.engine)
        project, _ = await stores.ledger.projects.create("bench")
        scopes = (Scope(project.id, str(n)) for n in range(users))
        mine = [
            {
                "id": scope.lane_id,
                "project_id": project.id,
                "user_id": scope.user_id,
                "state": "IDLE",
            }
            for scope in scopes
        ]
        await _copy(stores, lanes, mine)
        with spawned as processes:
            for size in sizes:
                await fill(stores, project.id, users, size - stored, speech, vectors)
                stored = size
                await _vacuum(stores)
                report[str(size)] = {
                    f"{clients}_clients{'_with_turns' if turns else ''}": measure(
                        processes, Asked(settings, project.id, users, clients, QUERIES, turns)
                    )
                    for clients in CLIENTS
                    for turns in (False, True)
                }
                print(size, json.dumps(report[str(size)]), flush=True)
    return report


async def _vacuum(stores: Stores) -> None:
    """Vacuum and analyze, as autovacuum would do later."""
    async with stores.ledger.engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("VACUUM ANALYZE"))


@contextmanager
def servers(folder: Path, backend: str, processes: int) -> Iterator[Settings]:
    """Settings for new servers with an empty ledger and an empty index."""
    with ExitStack() as stack:
        at = {"database_url": stack.enter_context(Postgres(folder / "postgres")).url}
        if backend == "chroma":
            at["chroma_url"] = stack.enter_context(Chroma(folder / "chroma")).url
        yield Settings.model_validate(at | {"vectors": backend, "api_processes": processes})


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Stores]:
    built, embedder = bootstrap.stores(settings), RandomVectors()
    ledger = built.ledger
    vectors = Tables(ledger.engine) if settings.vectors == "pgvector" else built.vectors
    index = VectorIndex(vectors, ledger.memory_vectors, embedder, buckets=settings.buckets)
    yield Stores(ledger, vectors, embedder, index, index.of(ledger.turn_vectors))
    await built.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--processes", type=int, default=1, help="that share the clients")
    options = parser.parse_args()
    report: dict[str, Any] = {"cores": os.cpu_count(), **vars(options)}
    for backend in options.vectors:
        print(backend, flush=True)
        with (
            tempfile.TemporaryDirectory() as folder,
            servers(Path(folder), backend, options.processes) as settings,
        ):
            report[backend] = await run(settings, options.sizes, options.users)
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    (results / "search.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    uvloop.run(main())
