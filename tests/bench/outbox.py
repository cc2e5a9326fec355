"""Overhead of an add with the outbox: `PYTHONPATH=clients/python python -m tests.bench.outbox`.

Each round makes one add, and one bare append with fdatasync of the same size, in turns on the same
disk; the sender runs in its thread against a stand-in API in another process. Prints milliseconds
as JSON; `cpu` is the processor time of the add, which other load on the machine does not change.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from memlane_client import Memlane

LINE = b"x" * 250 + b"\n"


class StandInApi(BaseHTTPRequestHandler):
    """Accepts every add."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"event_id": self.headers["Idempotency-Key"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def stand_in() -> Iterator[str]:
    """The URL of a stand-in API in a process of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandInApi)
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        process.kill()
        process.join()
        server.server_close()


def bare(file: int) -> None:
    os.write(file, LINE)
    os.fdatasync(file)


def measure(folder: Path, *, adds: int) -> dict[str, dict[str, float]]:
    """Percentiles of both, and of the processor time of an add."""
    file = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    add_ms, bare_ms, cpu_ms = [], [], []
    with stand_in() as url, Memlane("key", url, outbox=folder / "outbox") as memlane:
        for number in range(adds):
            begun, cpu_begun = time.perf_counter(), time.thread_time()
            memlane.add(f"turn {number} " + "x" * 100, user_id=f"user-{number % 5}")
            between, cpu_ended = time.perf_counter(), time.thread_time()
            bare(file)
            add_ms.append((between - begun) * 1e3)
            bare_ms.append((time.perf_counter() - between) * 1e3)
            cpu_ms.append((cpu_ended - cpu_begun) * 1e3)
    return {
        "add": percentiles(add_ms),
        "bare append": percentiles(bare_ms),
        "cpu": percentiles(cpu_ms),
    }


def percentiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100)
    return {"p50": round(cuts[49], 3), "p95": round(cuts[94], 3), "p99": round(cuts[98], 3)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--adds", type=int, default=1_000)
    options.add_argument("--folder", type=Path, help="on the disk to measure; default: temporary")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        print(json.dumps(measure(Path(name), adds=given.adds)))


if __name__ == "__main__":
    main()
