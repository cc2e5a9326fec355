"""Cost of the engine: CPU per event and hop, beside a no-op Celery hop of the same run.

Every user sends the same sentence, so the embedder answers from its cache and the rules model costs
almost nothing. What remains is hops, SQL statements and vector writes.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import asyncpg
import psutil
from celery import Celery
from celery.worker import state

from tests.bench.load import closed_loop
from tests.support.chaos_ledger import database_url
from tests.support.stack import Stack, wait_until

# extract, retrieve, apply, relate: the stages of a fact without similar memories.
HOPS = 4
NOOPS, NOOPS_QUEUED = 600, 3_000
IN_FLIGHT = "SELECT EXISTS (SELECT FROM events WHERE completed_at IS NULL)"
FAILED = "SELECT count(*) FROM events WHERE status = 'FAILED'"
PENDING_VECTORS = """
SELECT EXISTS (SELECT FROM memories WHERE owed)
    OR EXISTS (SELECT FROM turn_vectors WHERE owed)
"""


def cpu_s(stack: Stack) -> dict[str, float]:
    """CPU seconds so far of each process of the stack, with its children."""
    figures = {}
    for name, pid in stack.pids().items():
        if name == "supervisor":
            continue  # its children are the processes below
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        figures[name] = sum(map(_spent_s, family))
    return figures


def _spent_s(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:  # a helper process of the server has ended
        return 0.0


async def drain(stack: Stack, label: str, *, events: int, users: int) -> dict[str, Any]:
    """Accept adds while the workers are paused, then drain them; return rate and CPU per event."""
    await idle(stack)  # no event is in flight, and every model is loaded
    await pause(stack, True)
    await closed_loop(
        stack.port,
        stack.key,
        callers=16,
        requests=events,
        label=label,
        users=users,
        text="I like walking by the river.",
    )
    before, began = cpu_s(stack), time.perf_counter()
    await pause(stack, False)
    await idle(stack)
    wall_s = time.perf_counter() - began
    await caught_up(stack)  # background writes count towards the cost of the events
    after = cpu_s(stack)
    spent = {name: 1000 * (after[name] - before[name]) / events for name in before if name in after}
    return {
        "events": events,
        "users": users,
        "events_per_s": round(events / wall_s, 1),
        "cpu_ms_per_event": {k: round(v, 2) for k, v in sorted(spent.items()) if v >= 0.005},
        "worker_cpu_ms_per_event": round(
            sum(v for k, v in spent.items() if k.startswith("worker")), 2
        ),
    }


async def idle(stack: Stack) -> None:
    """Return once every event has ended; fail if one has failed.

    Reads the ledger, because `/metrics` may be 5 s old.
    """
    connection = await asyncpg.connect(database_url(stack))

    async def all_ended() -> bool:
        return not await connection.fetchval(IN_FLIGHT)

    await wait_until(all_ended, within_s=600, what="every event has ended")
    failed = await connection.fetchval(FAILED)
    assert not failed, f"{failed} events have failed"
    await connection.close()


async def caught_up(stack: Stack) -> None:
    """Return once the index has no stale rows."""
    connection = await asyncpg.connect(database_url(stack))

    async def all_written() -> bool:
        return not await connection.fetchval(PENDING_VECTORS)

    # The query scans both tables: frequent polls would add to the CPU that is measured.
    await wait_until(all_written, within_s=60, what="the index has no stale rows", every_s=1.0)
    await connection.close()


async def pause(stack: Stack, stop: bool) -> None:
    for name, pid in stack.pids().items():
        if name.startswith("worker"):
            process = psutil.Process(pid)
            process.suspend() if stop else process.resume()


def noop_app(broker_url: str) -> Celery:
    app = Celery("noop", broker=broker_url)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        worker_enable_remote_control=False,
        worker_prefetch_multiplier=1,
        task_default_queue="bench.noop",
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    return app


def work(app: Celery, *, concurrency: int) -> None:
    """Run a Celery worker without optional features until a task stops it."""
    app.Worker(
        pool="threads",
        concurrency=concurrency,
        queues=["bench.noop"],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    ).start()


def noop_hop_ms(broker_url: str) -> float:
    """CPU milliseconds per hop of a task that does nothing but publish the next one."""
    app, left = noop_app(broker_url), NOOPS

    @app.task(name="bench.noop")
    def noop(lane: str, fence: int) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            app.send_task("bench.noop", args=(lane, fence + 1), queue="bench.noop")
        else:
            state.should_stop = 0

    app.send_task("bench.noop", args=("lane", 0), queue="bench.noop")
    began = time.process_time()
    work(app, concurrency=20)
    return 1000 * (time.process_time() - began) / NOOPS


def noops_per_s(broker_url: str) -> float:
    """No-op tasks per second of one worker with a full queue."""
    app, lock = noop_app(broker_url), threading.Lock()
    done, began = 0, 0.0

    @app.task(name="bench.noop")
    def noop(lane: str, fence: int) -> None:
        nonlocal done, began
        with lock:
            done += 1
            began = began or time.perf_counter()
            if done == NOOPS_QUEUED:
                state.should_stop = 0

    for _ in range(NOOPS_QUEUED):
        app.send_task("bench.noop", args=("lane", 0), queue="bench.noop")
    work(app, concurrency=100)
    return NOOPS_QUEUED / (time.perf_counter() - began)


MEASURES = {"hop_ms": noop_hop_ms, "per_s": noops_per_s}

if __name__ == "__main__":
    print(MEASURES[sys.argv[1]](sys.argv[2]))
