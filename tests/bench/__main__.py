"""Measurements of the engine alone: `python -m tests.bench`, JSON on stdout and in bench-results/.

They use a separate stack, with the load generator on the same cores. Timings are measured here and
never asserted in tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import uvloop

from deploy.stack.layout import Layout
from tests.bench.engine import HOPS, drain
from tests.bench.fairness import fairness
from tests.bench.load import closed_loop
from tests.support.stack import Stack

CALLERS = ((1, 300), (16, 2_000), (64, 6_000))
RESULTS = Path("bench-results")


async def accepts(stack: Stack, label: str) -> dict[str, Any]:
    """Latency and rate of accepted adds by number of callers, and the API's CPU time per add."""
    api = psutil.Process(stack.pid("api"))
    figures: dict[str, Any] = {}
    for callers, requests in CALLERS:
        before_s = sum(api.cpu_times()[:2])
        run = await closed_loop(
            stack.port, stack.key, callers=callers, requests=requests, label=f"{label}-{callers}"
        )
        cpu_s = sum(api.cpu_times()[:2]) - before_s
        figures[f"{callers}_callers"] = run.summary() | {
            "api_cpu_ms": round(1000 * cpu_s / requests, 3)
        }
    return figures


@contextmanager
def paused(stack: Stack) -> Iterator[None]:
    """Pause the worker, so that only the accept path is measured."""
    stack.kill("worker-1", signal.SIGSTOP)
    try:
        yield
    finally:
        stack.kill("worker-1", signal.SIGCONT)


def broker_url(stack: Stack) -> str:
    layout = Layout(stack.data_dir)
    port = json.loads(layout.ports.read_text())["redis"]
    return f"redis://:{layout.secret('redis_password')}@127.0.0.1:{port}/0"


def _noop(measure: str, url: str) -> float:
    """Run in a new process, because Celery's worker needs the main thread."""
    command = [sys.executable, "-m", "tests.bench.engine", measure, url]
    return float(subprocess.check_output(command, text=True).split()[-1])


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder) / "stack") as stack:
        await closed_loop(stack.port, stack.key, callers=4, requests=200, label="warm")
        # A first run at full width opens connections and prepares statements.
        await drain(stack, "first", events=300, users=300)
        # First, because the adds of the other benchmarks take minutes to drain.
        wide = await drain(stack, "wide", events=600, users=600)
        deep = await drain(stack, "deep", events=1_200, users=30)
        noop_ms = await asyncio.to_thread(_noop, "hop_ms", broker_url(stack))
        noops_per_s = await asyncio.to_thread(_noop, "per_s", broker_url(stack))
        with paused(stack):
            alone = await accepts(stack, "alone")
        live = await accepts(stack, "live")
        rss = {
            name: round(psutil.Process(pid).memory_info().rss / 1e6)
            for name, pid in sorted(stack.pids().items())
        }
    shares = await fairness(events=2_000, scopes=5_000)
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),  # noqa: TID251  a report's date
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "accept_workers_paused": alone,
        "accept_workers_live": live,
        "drain_wide": wide,
        "drain_deep": deep,
        "noop_hop_cpu_ms": round(noop_ms, 3),
        "event_cpu_to_noop_hops": round(wide["worker_cpu_ms_per_event"] / (HOPS * noop_ms), 2),
        "noop_tasks_per_s": round(noops_per_s),
        "backlog_events_to_noop_tasks": round(deep["events_per_s"] / noops_per_s, 2),
        "fairness": shares,
        "rss_mb": rss,
    }
    text = json.dumps(report, indent=2)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "accept.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    uvloop.run(main())
