"""Throughput by number of workers with a slow model, and the cost of a model call by transport.

The stand-in for a model is another process that answers after half a second, so the workers spend
CPU only on the engine and on LiteLLM's client.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.engine import drain
from tests.support.stack import Stack

LATENCY_MS = 500
WORKERS = (1, 2, 4)
# Stages of a worker at once, so few that four workers wait for the model and not for two cores;
# the events of each worker, of a user each; many events in few scopes.
CONCURRENCY = 10
WIDE_OF_WORKER = 200
DEEP = {"events": 1_600, "users": 20}
CALLS = 200


@contextmanager
def stand_in(*, latency_ms: float) -> Iterator[str]:
    """Base URL of a stand-in for a model."""
    command = [
        sys.executable, "-m", "tests.support.llm_server",
        "--port", "0", "--latency-ms", str(latency_ms),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield str(json.loads(server.stdout.readline())["base_url"])
        finally:
            server.terminate()


async def scaling() -> dict[str, Any]:
    """Drained adds per second of 1, 2 and 4 worker processes, each number on a new stack.

    `of_linear`: the rate, divided by that of one worker times the number of workers.
    """
    figures: dict[str, Any] = {}
    with stand_in(latency_ms=LATENCY_MS) as base_url:
        for workers in WORKERS:
            wide = WIDE_OF_WORKER * workers
            settings = {
                "MEMLANE_WORKERS": str(workers),
                "MEMLANE_WORKER_CONCURRENCY": str(CONCURRENCY),
                "MEMLANE_LLM__MODEL": "openai/stand-in",
                "MEMLANE_LLM__API_BASE": base_url,
                "MEMLANE_LLM__API_KEY": "none",
            }
            with (
                tempfile.TemporaryDirectory() as folder,
                Stack(Path(folder) / "stack", settings) as stack,
            ):
                await drain(stack, "warm", events=20 * workers, users=20 * workers)
                figures[f"{workers}_workers"] = {
                    "distinct_users": await drain(stack, "wide", events=wide, users=wide),
                    "few_scopes": await drain(stack, "deep", **DEEP),
                }
    single = figures["1_workers"]["distinct_users"]["events_per_s"]
    for workers in WORKERS:
        run = figures[f"{workers}_workers"]
        rate = run["distinct_users"]["events_per_s"]
        run["speedup"], run["of_linear"] = (
            round(rate / single, 2),
            round(rate / single / workers, 3),
        )
    return figures


def transports() -> dict[str, float]:
    """CPU milliseconds of one completion through LiteLLM, by transport, each in a new process."""
    with stand_in(latency_ms=0) as base_url:
        return {
            transport: float(
                subprocess.check_output(
                    [sys.executable, "-m", "tests.bench.transports", transport, base_url], text=True
                ).split()[-1]
            )
            for transport in ("aiohttp", "httpx", "sync_in_threads")
        }


async def main() -> None:
    print(json.dumps({"transports_cpu_ms": transports(), "scaling": await scaling()}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())  # noqa: TID251  an entry of its own
