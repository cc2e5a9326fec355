"""What a search costs at 1,000 to 100,000 memories of 1,000 users: `python -m tests.bench.search`.

Everything but the query's embedding: the memories are synthetic, with random vectors and words by
Zipf's law, written straight into ledger and index. JSON on stdout and in bench-results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import uvloop
from sqlalchemy import insert, select, text

from deploy.stack.layout import Layout
from pipeline import bootstrap, lexical, search
from pipeline.adapters.embedder_minilm import DIMENSIONS
from pipeline.bootstrap import Stores
from pipeline.filters import parse
from pipeline.ledger.changes import text_hash
from pipeline.ledger.schema import events, lanes, memories, messages, projects
from pipeline.ports import Vector
from pipeline.settings import Settings
from pipeline.vectors import VectorIndex
from tests.support.stack import Stack

SIZES = (1_000, 10_000, 100_000)
USERS = 1_000
WORDS, TEXT_WORDS, QUERY_WORDS = 20_000, 12, 6
SYLLABLES = [one + two for one in "bdfgklmnprtvz" for two in ("a", "i", "o", "un", "ar")]
QUERIES, WARM = 300, 30
PAGE = 2_000
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class RandomVectors:
    """An embedder that costs nothing."""

    name = "local/minilm"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.one() for _ in texts]

    def one(self) -> Vector:
        values = [self._chance.gauss(0, 1) for _ in range(DIMENSIONS)]
        length = sum(value * value for value in values) ** 0.5
        return [value / length for value in values]


class Speech:
    """Sentences whose words are as unequal as those of people, a fifth of them compounds."""

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
    """Syllables, more of them for a rarer word."""
    rest, last = divmod(number, len(SYLLABLES))
    return (_sound(rest) if rest else "") + SYLLABLES[last]


async def fill(
    stores: Stores, project: UUID, users: int, count: int, speech: Speech, vectors: RandomVectors
) -> None:
    """So many more memories, dealt out to the users in turn, each with the turn it was said in."""
    for start in range(0, count, PAGE):
        size = min(PAGE, count - start)
        rows = [_row(project, (start + at) % users, speech, vectors) for at in range(size)]
        async with stores.ledger.engine.begin() as connection:
            for table in (events, messages, memories):
                await connection.execute(insert(table), [row[table.name] for row in rows])
        while await stores.index.catch_up(limit=500):
            pass


def _row(project: UUID, user: int, speech: Speech, vectors: RandomVectors) -> dict[str, Any]:
    sentence, event_id, lane_id = speech.sentence(TEXT_WORDS), uuid4(), UUID(int=user + 1)
    terms, seq = lexical.terms(sentence), random.getrandbits(62)
    said_at = BEGAN + timedelta(seconds=seq % 20_000_000)
    return {
        "events": {
            "id": event_id,
            "project_id": project,
            "lane_id": lane_id,
            "seq": seq,
            "status": "SUCCEEDED",
            "options": {"infer": True, "metadata": {}},
            "tokens": TEXT_WORDS,
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
        "memories": {
            "id": uuid4(),
            "project_id": project,
            "lane_id": lane_id,
            "user_id": str(user),
            "text": sentence,
            "text_hash": text_hash(sentence),
            "terms": terms,
            "attributed_to": "user",
            "embedding": array("f", vectors.one()).tobytes(),
            "embedder": vectors.name,
            "event_id": event_id,
            "message_ordinal": 0,
            "valid_from": said_at,
        },
    }


async def measure(
    stores: Stores, project: UUID, users: int, speech: Speech, *, clients: int, turns: bool
) -> dict[str, float]:
    """Milliseconds of a search as its caller sees it."""
    took: list[float] = []
    left = iter(range(QUERIES + WARM))

    async def client() -> None:
        for _ in left:
            where = parse({"user_id": str(random.randrange(users))})
            query = search.Query(speech.sentence(QUERY_WORDS), where, 10, 0.0, turns=turns)
            began = time.perf_counter()
            await search.search(
                project, query, ledger=stores.ledger, embedder=stores.embedder, index=stores.index
            )
            took.append(1000 * (time.perf_counter() - began))

    await asyncio.gather(*(client() for _ in range(clients)))
    ordered = sorted(took[WARM:])
    return {
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(ordered[int(0.95 * len(ordered))], 1),
    }


async def run(stack: Stack, sizes: Sequence[int], users: int) -> dict[str, Any]:
    chance = random.Random(7)
    speech, vectors = Speech(chance), RandomVectors(chance)
    built = bootstrap.stores(_settings(stack))
    index = VectorIndex(built.vectors, built.ledger.memories, vectors, buckets=64)
    stores = Stores(built.ledger, built.vectors, vectors, index)
    async with stores.ledger.engine.begin() as connection:
        project = (await connection.execute(select(projects.c.id))).scalars().first()
        assert project is not None
        mine = [
            {"id": UUID(int=n + 1), "project_id": project, "user_id": str(n), "state": "IDLE"}
            for n in range(users)
        ]
        await connection.execute(insert(lanes), mine)
    report: dict[str, Any] = {}
    held = 0
    for size in sizes:
        await fill(stores, project, users, size - held, speech, vectors)
        held = size
        async with stores.ledger.engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text("VACUUM ANALYZE memories, messages, events, lanes"))
        report[str(size)] = {
            f"{clients}_clients{'_with_turns' if turns else ''}": await measure(
                stores, project, users, speech, clients=clients, turns=turns
            )
            for clients in (1, 16)
            for turns in (False, True)
        }
        print(size, report[str(size)], flush=True)
    await built.close()
    return report


def _settings(stack: Stack) -> Settings:
    layout = Layout(stack.data_dir)
    at = json.loads(layout.ports.read_text())
    password = layout.secret("postgres_password")
    return Settings.model_validate(
        {
            "database_url": f"postgresql://memlane:{password}@127.0.0.1:{at['postgres']}/memlane",
            "chroma_url": f"http://127.0.0.1:{at['chroma']}",
        }
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--users", type=int, default=USERS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder) / "stack") as stack:
        report = await run(stack, asked.sizes, asked.users)
    results = Path("bench-results")
    results.mkdir(exist_ok=True)
    (results / "search.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    uvloop.run(main())
