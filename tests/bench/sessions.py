"""Ends of temporary sessions beside other readers: `python -m tests.bench.sessions`, JSON output.

Two tenants have the same ordinary memories. One of them also declares temporary runs over HTTP,
each with an add. Their ends come in groups, with a pause after each, while one caller reads as an
ordinary user of either tenant in turn. So each ratio is of requests of the same minute:

    live     with live sessions in the project, to without
    ending   while sessions end, to the pauses
    end_ms   ledger: from one end to the next; whole: with the vectors; request: over HTTP

At the end no row, no vector and no file of another program names a session: `left` lists those
that do.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import httpx

from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.settings import default_api_processes, default_workers
from tests.bench.hostile.tenant import dumped, organization
from tests.bench.load import send_all
from tests.support.chaos_ledger import LedgerWindow, database_url, port_of
from tests.support.chaos_sessions import traces
from tests.support.stack import Stack, wait_until

USERS, MEMORIES_EACH = 10, 40
CALLERS = 8
# Adds that wait at most: beyond a limit they are refused.
OPEN = 1_000
# Sessions that a request ends; the others end by their time.
BY_REQUEST = 200
RUN, PLACE = "visitqx", "Qxville"
FIGURES = Mapping[str, Any]
SETTLED = "SELECT NOT EXISTS (SELECT FROM events WHERE completed_at IS NULL)"
DUE = """
UPDATE private_runs SET expires_at = now() WHERE digest IN (
    SELECT digest FROM private_runs WHERE expires_at > now() LIMIT $1)
"""
EXPIRED = "SELECT count(*) FROM private_runs WHERE expires_at <= now()"
ENDS = """
SELECT e.created_at AS began, v.completed_at AS ended
FROM erasures e JOIN events v ON v.id = e.event_id
WHERE e.of_session AND e.created_at >= $1 ORDER BY e.created_at
"""
VECTOR_IDS = "SELECT id FROM memories UNION ALL SELECT id FROM turn_vectors"
COMPLETE = "SELECT NOT EXISTS (SELECT FROM erasures WHERE due_at IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Sample:
    """One read: its kind, the tenant that sent it, its phase and milliseconds."""

    kind: str
    tenant: str
    phase: str
    ms: float


@dataclass
class Readers:
    """Ordinary users of both tenants, who read in turn. `phase` labels the samples."""

    url: str
    keys: Mapping[str, str]
    phase: str = "before"
    samples: list[Sample] = field(default_factory=list)

    async def run(self) -> None:
        """Send each read for each tenant, in random order, until cancelled."""
        chance = random.Random(7)
        clients = {name: self._client(key) for name, key in self.keys.items()}
        for turn in range(1_000_000):
            user = f"user-{turn % USERS}"
            pairs = [(kind, tenant) for kind in READS for tenant in clients]
            for kind, tenant in chance.sample(pairs, len(pairs)):
                phase, began = self.phase, time.perf_counter()
                answer = await clients[tenant].request(*READS[kind](user, turn))
                ms = 1000 * (time.perf_counter() - began)
                assert answer.status_code == 200, answer.text
                assert PLACE not in answer.text
                if phase == self.phase:
                    self.samples.append(Sample(kind, tenant, phase, ms))

    def _client(self, key: str) -> Sender:
        return Sender(self.url, key)

    def ratios(self, phases: tuple[str, str], tenants: tuple[str, str]) -> FIGURES:
        """Medians by kind of read, the first phase and tenant to the second, and both in ms."""
        figures = {}
        for kind in READS:
            first, second = (
                [s.ms for s in self.samples if (s.kind, s.phase, s.tenant) == (kind, *pair)]
                for pair in zip(phases, tenants, strict=True)
            )
            if first and second:
                figures[kind] = {
                    "ratio": round(median(first) / median(second), 2),
                    "p50_ms": [round(median(first), 1), round(median(second), 1)],
                    "reads": [len(first), len(second)],
                }
        return figures


class Sender:
    """HTTP client of one tenant."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Token {key}", "Content-Type": "application/json"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=60)

    async def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return await self._http.request(method, path, content=body and dumped(body))


Request = tuple[str, str, Any]
READS: Mapping[str, Callable[[str, int], Request]] = {
    "list": lambda user, turn: ("POST", "/v3/memories/", {"user_id": user}),
    "search": lambda user, turn: (
        *("POST", "/v3/memories/search/"),
        {"user_id": user, "query": f"Which place does the user like, visit {turn}?"},
    ),
    "project list": lambda user, turn: ("POST", "/v3/memories/", {"filters": {"user_id": "*"}}),
    "feed": lambda user, turn: ("GET", "/v1/memories/events/", None),
    "changes": lambda user, turn: ("GET", "/v1/changes/?from=2020-01-01", None),
    "events": lambda user, turn: ("GET", "/v1/events/", None),
    "entities": lambda user, turn: ("GET", "/v1/entities/", None),
    "graph": lambda user, turn: ("GET", f"/v1/graph/?user_id={user}", None),
}


async def measure(stack: Stack, sessions: int, groups: int, rest_s: float) -> FIGURES:
    """Fill both tenants, end all sessions, and look for what is left."""
    tenants = {name: organization(stack.url, stack.key, name) for name in ("busy", "quiet")}
    keys = {name: tenant["key"] for name, tenant in tenants.items()}
    connection = await asyncpg.connect(database_url(stack), timeout=60)
    readers = Readers(stack.url, keys)
    for key in keys.values():
        await fill_users(stack, key)
    await settled(connection)
    filled_s = await fill_sessions(stack, keys["busy"], sessions, connection)
    reading = asyncio.create_task(readers.run())
    try:
        readers.phase = "live"
        await asyncio.sleep(3 * rest_s)
        readers.phase = "requests"
        requests_ms = await end_by_request(stack, keys["busy"], BY_REQUEST)
        ends = await end_by_time(connection, readers, sessions - BY_REQUEST, groups, rest_s)
        readers.phase = "ended"
        await asyncio.sleep(rest_s)
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
    await until(connection, COMPLETE, what="the second pass over the index")
    await connection.close()
    return {
        "sessions": sessions,
        "filled_s": round(filled_s),
        "end_ms": ends | {"request": percentiles(requests_ms)},
        "live": readers.ratios(("live", "live"), ("busy", "quiet")),
        "ending": readers.ratios(("ending", "rest"), ("quiet", "quiet")),
        "ending_same_project": readers.ratios(("ending", "rest"), ("busy", "busy")),
        "ended": readers.ratios(("ended", "ended"), ("busy", "quiet")),
        "left": await left(stack, tenants["busy"]["project_id"]),
    }


async def fill_users(stack: Stack, key: str) -> None:
    for user in range(USERS):
        texts = [f"I like place {n} of user {user}." for n in range(MEMORIES_EACH)]
        messages = [{"role": "user", "content": text} for text in texts]
        body = {"user_id": f"user-{user}", "infer": False, "messages": messages}
        await Sender(stack.url, key).request("POST", "/v3/memories/add/", body)


async def fill_sessions(
    stack: Stack, key: str, sessions: int, connection: asyncpg.Connection[Any]
) -> float:
    """Declare the runs, and add a message to each, a part at a time. Returns the seconds."""

    def declare(n: int) -> bytes:
        return raw(stack, key, "PUT", f"/v1/runs/{RUN}{n}/", {"privacy": "temporary"})

    def add(n: int) -> bytes:
        message = {"role": "user", "content": f"I live in {PLACE}{n}."}
        body = {"user_id": f"user-{n % USERS}", "run_id": f"{RUN}{n}", "messages": [message]}
        return raw(stack, key, "POST", "/v3/memories/add/", body)

    began = time.monotonic()
    for start in range(0, sessions, OPEN):
        number = min(OPEN, sessions - start)
        for request in (declare, add):
            part = partial(_shifted, request, start)
            result = await send_all(stack.port, part, callers=CALLERS, requests=number)
            assert not result.failures, result.summary()
        await settled(connection)
    return time.monotonic() - began


def _shifted(request: Callable[[int], bytes], start: int, turn: int) -> bytes:
    return request(start + turn)


def raw(stack: Stack, key: str, method: str, path: str, body: Any) -> bytes:
    content = dumped(body)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{stack.port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def settled(connection: asyncpg.Connection[Any]) -> None:
    """Wait until every event has ended."""
    await until(connection, SETTLED, what="all events have ended")


async def until(connection: asyncpg.Connection[Any], query: str, *, what: str) -> None:
    async def holds() -> bool:
        return bool(await connection.fetchval(query))

    await wait_until(holds, within_s=3_600, what=what, every_s=0.2)


async def end_by_request(stack: Stack, key: str, number: int) -> Sequence[float]:
    """End sessions by requests, one after another: milliseconds of each."""
    client, times = Sender(stack.url, key), []
    for n in range(number):
        began = time.perf_counter()
        answer = await client.request("DELETE", f"/v2/entities/run/{RUN}{n}/")
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, answer.text
    return times


async def end_by_time(
    connection: asyncpg.Connection[Any], readers: Readers, number: int, groups: int, rest_s: float
) -> dict[str, Any]:
    """Let the sessions expire in groups, with a pause after each, and measure the ends."""
    gaps: list[float] = []
    wholes: list[float] = []
    for _ in range(groups):
        readers.phase = "rest"
        await asyncio.sleep(rest_s)
        since = await connection.fetchval("SELECT now()")
        readers.phase = "ending"
        await connection.execute(DUE, -(-number // groups))  # the last group may be smaller
        await until(connection, f"SELECT ({EXPIRED}) = 0", what="all sessions have ended")
        await settled(connection)
        readers.phase = "after"
        rows = await connection.fetch(ENDS, since)
        began = [row["began"].timestamp() for row in rows]
        gaps += [1000 * (b - a) for a, b in itertools.pairwise(began)]
        last = max(row["ended"].timestamp() for row in rows)
        wholes.append(1000 * (last - began[0]) / len(rows))
    return {"ledger": percentiles(gaps), "whole": [round(each, 1) for each in wholes]}


def percentiles(times_ms: Sequence[float]) -> FIGURES:
    ordered = sorted(times_ms)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    last = len(ordered) - 1
    return {name: round(ordered[int(share * last)], 1) for name, share in shares.items()}


async def left(stack: Stack, project_id: str) -> FIGURES:
    """Places that still name a session: columns, files of the other programs, and vectors."""
    window = LedgerWindow(database_url(stack))
    places: dict[str, Any] = dict(await traces(window, (RUN, PLACE)))
    await window.close()
    if strangers := await vectors_without_row(stack, project_id):
        places["vectors without a row"] = strangers
    for file in sorted(stack.data_dir.rglob("*")):
        if file.is_file() and "postgres" not in file.relative_to(stack.data_dir).parts[0]:
            text = file.read_bytes()
            hits = [word for word in (RUN, PLACE) if word.lower().encode() in text.lower()]
            if hits:
                places[str(file.relative_to(stack.data_dir))] = hits
    return places


async def vectors_without_row(stack: Stack, project_id: str) -> int:
    """Number of the project's vectors that belong to no memory and no turn."""
    window = LedgerWindow(database_url(stack))
    known = {str(row["id"]) for row in await window.rows(VECTOR_IDS)}
    await window.close()
    chroma = ChromaVectors(f"http://127.0.0.1:{port_of(stack, 'chroma')}")
    ids: set[str] = set()
    for name in await chroma.list_cols():
        records = await chroma.list(name, where={"project_id": project_id}, limit=1_000_000)
        ids |= {str(record.id) for record in records}
    await chroma.close()
    assert ids & known, "the index holds no vector of the ordinary memories"
    return len(ids - known)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sessions", description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=8, help="groups of sessions that end at once")
    parser.add_argument("--rest-s", type=float, default=10.0, help="pause after each group")
    given = parser.parse_args()
    settings = {
        "MEMLANE_API_PROCESSES": str(default_api_processes()),
        "MEMLANE_WORKERS": str(default_workers()),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Stack(Path(folder) / "stack", settings) as stack,
        asyncio.Runner() as runner,
    ):
        figures = runner.run(measure(stack, given.sessions, given.groups, given.rest_s))
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
