"""End to end over HTTP with a hosted-style model and embedder; the CPU of all processes counts.

    python -m tests.bench.hosted                      everything, with mem0's library beside it
    python -m tests.bench.hosted search-chroma …      some of it

JSON on stdout; docs/benchmarks/hosted.* has the record, tables and plots.

Client, provider and every server share the machine's cores. A figure is the median of `RUNS` runs.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import uvloop

from deploy.stack.servers import Postgres
from pipeline.settings import default_api_processes, default_workers
from tests.bench import report
from tests.bench.engine import caught_up, cpu_s, idle
from tests.bench.load import LoadResult, add_request, search_request, send_all
from tests.support.stack import Stack

RUNS = 3
MEMORIES, USERS, BATCH = 10_000, 50, 40
SEARCHES = ((1, 200), (16, 800), (64, 1_600))
ACCEPTS = ((1, 200), (16, 1_000), (64, 3_000))
WIDE_EVENTS = 600
DEEP_USERS, DEEP_TURNS = 16, 94
SLOW_CALLERS, SLOW_EVENTS, SLOW_MS = 128, 1_500, 500
TOPICS = (
    "garden", "bicycle", "bakery", "guitar", "harbour", "chess", "pottery", "marathon", "violin",
    "cinema", "mountain", "kitchen", "library", "painting", "football", "sailing",
)  # fmt: skip
Figures = dict[str, Any]


def sentence(number: int) -> str:
    topic, other = TOPICS[number % 16], TOPICS[number // 16 % 16]
    return f"I went from the {topic} to the {other} on trip {number}."


@contextmanager
def provider(
    *, latency_ms: float = 0.0, embedding_ms: float = 0.0, floats: bool = False
) -> Iterator[str]:
    """Base URL of a local stand-in for a hosted provider, in another process."""
    command = [sys.executable, "-m", "tests.support.hosted_model", "--latency-ms", str(latency_ms)]
    command += ["--embedding-ms", str(embedding_ms)]
    command += ["--floats"] if floats else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield str(json.loads(server.stdout.readline())["base_url"])
        finally:
            server.terminate()


def hosted(base_url: str, **more: str) -> dict[str, str]:
    return {
        "MEMLANE_LLM__MODEL": "openai/stand-in",
        "MEMLANE_LLM__API_BASE": base_url,
        "MEMLANE_LLM__API_KEY": "sk-bench",
        "MEMLANE_EMBEDDER__MODEL": "openai/stand-in-1536",
        "MEMLANE_EMBEDDER__API_BASE": base_url,
        "MEMLANE_EMBEDDER__API_KEY": "sk-bench",
        "MEMLANE_GRAPH": "off",
        "MEMLANE_API_PROCESSES": str(default_api_processes()),
        "MEMLANE_WORKERS": str(default_workers()),
        "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0",
        **more,
    }


@contextmanager
def stack(settings: Mapping[str, str]) -> Iterator[Stack]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Stack(Path(folder) / "stack", settings) as running,
    ):
        yield running


def verbatim_request(running: Stack, key: str, batch: int) -> bytes:
    """Request that adds BATCH verbatim messages."""
    texts = [sentence(batch * BATCH + n) for n in range(BATCH)]
    body = json.dumps(
        {
            "messages": [{"role": "user", "content": text} for text in texts],
            "user_id": f"user-{batch % USERS}",
            "infer": False,
        }
    ).encode()
    return (
        f"POST /v3/memories/add/ HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
        f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def fill(running: Stack) -> Figures:
    """Add MEMORIES verbatim memories with eight callers, BATCH per request."""
    key = running.key
    began = time.perf_counter()
    run = await send_all(
        running.port,
        lambda turn: verbatim_request(running, key, turn),
        callers=8,
        requests=MEMORIES // BATCH,
    )
    assert not run.failures, run.summary()
    wall_s = time.perf_counter() - began
    await caught_up(running)
    return {"fill_s": round(wall_s, 1)}


async def searches(running: Stack, visits: Iterator[int]) -> Figures:
    """Latency and rate by number of callers, and CPU per search of each process."""
    key = running.key

    def request(turn: int) -> bytes:
        user = f"user-{turn * 7 % USERS}"
        topic, other = TOPICS[turn * 5 % 16], TOPICS[turn * 11 % 16]
        # A repeated question would be answered from the cache of embeddings.
        query = f"When did I go from the {topic} to the {other}, visit {next(visits)}?"
        return search_request(running.port, key, user=user, query=query)

    await send_all(running.port, request, callers=16, requests=100)  # prepares the statements
    figures: Figures = {}
    for callers, requests in SEARCHES:
        before = cpu_s(running)
        run = await send_all(running.port, request, callers=callers, requests=requests)
        figures[f"{callers}_callers"] = summary(run) | {
            "cpu_ms": spent_ms(before, cpu_s(running), requests)
        }
    return figures


def summary(run: LoadResult) -> Figures:
    whole = run.summary()
    return {name: whole[name] for name in ("per_s", "p50_ms", "p95_ms", "failures")}


def spent_ms(before: Mapping[str, float], after: Mapping[str, float], count: int) -> Figures:
    spent = {name: 1000 * (after[name] - before[name]) / count for name in before if name in after}
    by_kind: dict[str, float] = {}
    for name, ms in spent.items():
        kind = name.partition("-")[0]
        by_kind[kind] = by_kind.get(kind, 0.0) + ms
    kinds = {kind: round(ms, 2) for kind, ms in sorted(by_kind.items()) if ms >= 0.05}
    return kinds | {"total": round(sum(by_kind.values()), 2)}


async def search_bench(settings: Mapping[str, str]) -> Figures:
    with stack(settings) as running:
        filled = await fill(running)
        visits = count(10_000)
        runs = [await searches(running, visits) for _ in range(RUNS)]
        return filled | median_of(runs) | {"rss_mb": rss_mb(running)}


async def drain(running: Stack, label: str, *, events: int, users: int, callers: int) -> Figures:
    """Accept adds while workers process them: events per second until the last event ends."""
    key = running.key

    def request(turn: int) -> bytes:
        return add_request(running.port, key, user=f"{label}-{turn % users}", text=sentence(turn))

    await idle(running)
    before, began = cpu_s(running), time.perf_counter()
    accepted = await send_all(running.port, request, callers=callers, requests=events)
    await idle(running)
    wall_s = time.perf_counter() - began
    await caught_up(running)
    return {
        "events_per_s": round(events / wall_s, 1),
        "cpu_ms_per_event": spent_ms(before, cpu_s(running), events),
        "accept": summary(accepted),
    }


async def drain_bench(settings: Mapping[str, str], *, slow: bool = False) -> Figures:
    with stack(settings) as running:
        await drain(running, "warm", events=200, users=200, callers=16)
        if slow:
            runs = [
                await drain(
                    running, f"slow{n}", events=SLOW_EVENTS, users=SLOW_EVENTS, callers=SLOW_CALLERS
                )
                for n in range(RUNS)
            ]
            return {"slow_model": median_of(runs)}
        wide = [
            await drain(running, f"wide{n}", events=WIDE_EVENTS, users=WIDE_EVENTS, callers=16)
            for n in range(RUNS)
        ]
        deep = [
            await drain(
                running,
                f"deep{n}",
                events=DEEP_USERS * DEEP_TURNS,
                users=DEEP_USERS,
                callers=DEEP_USERS,
            )
            for n in range(RUNS)
        ]
        accepts = [await accept_under_load(running, n) for n in range(RUNS)]
        return {
            "distinct_users": median_of(wide),
            "few_users": median_of(deep),
            "accept_under_load": median_of(accepts),
            "rss_mb": rss_mb(running),
        }


async def accept_under_load(running: Stack, number: int) -> Figures:
    key = running.key
    figures: Figures = {}
    for callers, requests in ACCEPTS:

        def request(turn: int, callers: int = callers) -> bytes:
            user = f"load{number}-{callers}-{turn % 500}"
            return add_request(running.port, key, user=user, text=sentence(turn))

        run = await send_all(running.port, request, callers=callers, requests=requests)
        figures[f"{callers}_callers"] = summary(run)
    await idle(running)
    return figures


async def verbatim_bench(settings: Mapping[str, str]) -> Figures:
    """Adds of one verbatim message, each answered after the message is stored."""
    with stack(settings) as running:
        key = running.key

        def request(turn: int) -> bytes:
            body = json.dumps(
                {
                    "messages": [{"role": "user", "content": sentence(turn)}],
                    "user_id": f"v-{turn % 100}",
                    "infer": False,
                }
            ).encode()
            return (
                f"POST /v3/memories/add/ HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
                f"Authorization: Token {key}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode() + body

        await send_all(running.port, request, callers=4, requests=40)
        runs = []
        for _ in range(RUNS):
            figures: Figures = {}
            for label, callers, requests in (("1_caller", 1, 60), ("8_callers", 8, 240)):
                before = cpu_s(running)
                run = await send_all(running.port, request, callers=callers, requests=requests)
                cpu_ms = spent_ms(before, cpu_s(running), requests)
                figures[label] = summary(run) | {"cpu_ms_per_add": cpu_ms}
            runs.append(figures)
        return median_of(runs)


def rss_mb(running: Stack) -> Figures:
    return {
        name: round(psutil.Process(pid).memory_info().rss / 1e6)
        for name, pid in sorted(running.pids().items())
    }


def median_of(runs: list[Figures]) -> Figures:
    """Median of each figure over the runs, for nested figures too."""
    first = runs[0]
    return {
        name: median_of([run[name] for run in runs])
        if isinstance(first[name], dict)
        else round(median(run.get(name, 0) for run in runs), 2)
        for name in first
    }


def mem0(base_url: str) -> Figures:
    """Figures of mem0's library 2.2.1 in its own environment, with the same provider."""
    from tests.compat.environments import python_with

    try:
        python = python_with("mem0ai==2.2.1", "psycopg[binary,pool]", "pgvector") / "python"
    except AssertionError:
        return {"left_out": "mem0ai 2.2.1 cannot be installed here"}
    with tempfile.TemporaryDirectory() as home, Postgres(Path(home) / "postgres") as postgres:
        script = Path(__file__).parent / "peers" / "mem0_library.py"
        url = postgres.url.replace("+asyncpg", "")
        done = subprocess.run(
            [str(python), str(script), base_url, home, url, str(MEMORIES)],
            capture_output=True,
            text=True,
            check=False,
            timeout=1_800,
            env={"PATH": "/usr/bin:/bin", "HOME": home, "MEM0_TELEMETRY": "False"},
        )
    if done.returncode:
        return {"left_out": done.stderr[-300:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


async def with_provider(
    bench: Callable[[Mapping[str, str]], Awaitable[Figures]],
    *,
    latency_ms: float = 0.0,
    floats: bool = False,
    **settings: str,
) -> Figures:
    """Run a bench with a hosted-style model and embedder."""
    with provider(latency_ms=latency_ms, floats=floats) as base_url:
        return await bench(hosted(base_url, **settings))


async def verbatim_minilm() -> Figures:
    return await verbatim_bench({"MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0"})


async def peer() -> Figures:
    with provider() as base_url:
        return await asyncio.to_thread(mem0, base_url)


BENCHES: Mapping[str, Callable[[], Awaitable[Figures]]] = {
    "search-chroma": partial(with_provider, search_bench),
    "search-pgvector": partial(with_provider, search_bench, MEMLANE_VECTORS="pgvector"),
    "search-floats": partial(with_provider, search_bench, floats=True),
    "search-minilm": partial(with_provider, search_bench, MEMLANE_EMBEDDER__MODEL="local/minilm"),
    "drain-default": partial(with_provider, drain_bench),
    "drain-one-worker": partial(with_provider, drain_bench, MEMLANE_WORKERS="1"),
    "drain-slow-model": partial(with_provider, partial(drain_bench, slow=True), latency_ms=SLOW_MS),
    "verbatim-minilm": verbatim_minilm,
    "mem0-library": peer,
}


async def measure(names: list[str]) -> Figures:
    return {name: await BENCHES[name]() for name in names or list(BENCHES)}


if __name__ == "__main__":
    measured = uvloop.run(measure(sys.argv[1:]))
    print(json.dumps(measured, indent=2))
    report.record(measured)
