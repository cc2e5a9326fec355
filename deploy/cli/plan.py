"""memlane plan: cores, processes, connections, memory and disk for a load.

The constants are measured on two cores; docs/howto/capacity.md has the formulas and the commands
that measure them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

# CPU milliseconds of an event, and of a search, by program. Source: docs/benchmarks/hosted.json of
# this day, written by `make bench`: the runs drain-default (distinct users) and search-chroma (16
# callers). tests/unit/deploy/test_plan.py compares them, so a new recording changes them too.
RECORDED = "2026-11-27"
EVENT_MS = {"API": 1.2, "workers": 3.5, "PostgreSQL": 4.2, "vector store": 4.2, "sweeper": 0.8}
SEARCH_MS = {"API": 5.0, "workers": 0.0, "PostgreSQL": 2.5, "vector store": 2.9, "sweeper": 0.1}
# Share of a core that is used at the planned load: the rest is for peaks.
USED = 0.7
# Bytes in PostgreSQL of an event and of a memory with their indexes, receipts and history, without
# vectors. Source: docs/benchmarks/growth.json, the sizes at 1,000,000 memories, and the rows of the
# other four stages, which `make bench ARGS=growth` does not fill.
EVENT_BYTES, MEMORY_BYTES = 2_000, 2_300
# Stage outputs of an event, kept for MEMLANE_RETENTION_DAYS.
OUTPUT_BYTES = 3_000
# Bytes of a vector's component: in PostgreSQL, and again in the memory of the vector store, whose
# graph comes on top.
FLOAT_BYTES = 4
# Megabytes of a process under load with remote models. Source: the largest rss_mb of the two runs.
API_MB, WORKER_MB, SWEEPER_MB, SERVERS_MB = 190, 200, 150, 150
# Events that a worker process has in progress at once (MEMLANE_WORKER_CONCURRENCY).
AT_ONCE = 100
# Connections of a process: the pool (MEMLANE_DATABASE_POOL) and those for adds, long operations,
# verifications and notifications.
CONNECTIONS = 16 + 4 + 4 + 1 + 1
DAY_S = 86_400
GB = 1e9


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """The load that the installation carries.

    `events`, `searches`: per second at the peak. `average`: the average as a share of the peak.
    `model_s`: seconds of all model calls of an event. `memories_each`: memories that an event adds.
    `cpu`: CPU time of a request on these machines, as a multiple of the recorded time.
    """

    events: float
    searches: float
    average: float
    model_s: float
    dimensions: int
    memories_each: float
    days: int
    cpu: float = 1


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a load. `cores` by program; disk and memory in GB."""

    cores: dict[str, float]
    api: int
    workers: int
    connections: int
    processes_gb: float
    index_gb: float
    disk_gb_a_day: float
    outputs_gb: float
    disk_gb: float

    @property
    def first(self) -> str:
        """The memory of the vectors, if it is the largest part of all; else the busiest program."""
        if self.index_gb > self.processes_gb:
            return "memory of the vector store"
        return max(self.cores, key=lambda name: self.cores[name])


def plan(load: PlannedLoad, *, retention_days: float = 30) -> Needs:
    """The needs of a load."""
    per_ms = load.cpu / 1_000 / USED
    cores = {
        name: (load.events * EVENT_MS[name] + load.searches * SEARCH_MS[name]) * per_ms
        for name in EVENT_MS
    }
    api = max(1, math.ceil(cores["API"]))
    by_cpu, by_calls = cores["workers"], load.events * load.model_s / AT_ONCE
    workers = max(1, math.ceil(max(by_cpu, by_calls)))
    # An event has the vectors of its turns, and each memory has one.
    events_a_day = load.events * load.average * DAY_S
    vectors = events_a_day * (1 + load.memories_each)
    vector_bytes = FLOAT_BYTES * load.dimensions
    rows = events_a_day * (EVENT_BYTES + load.memories_each * MEMORY_BYTES)
    a_day = rows + vectors * vector_bytes
    outputs = events_a_day * OUTPUT_BYTES * min(retention_days, load.days)
    return Needs(
        cores=cores,
        api=api,
        workers=workers,
        connections=(api + workers + 1) * CONNECTIONS,
        processes_gb=(api * API_MB + workers * WORKER_MB + SWEEPER_MB + SERVERS_MB) / 1_000,
        index_gb=vectors * load.days * vector_bytes / GB,
        disk_gb_a_day=a_day / GB,
        outputs_gb=outputs / GB,
        disk_gb=(a_day * load.days + outputs) / GB,
    )


def lines(load: PlannedLoad, needs: Needs) -> Iterator[str]:
    """The plan as text."""
    yield (
        f"{load.events:g} events/s and {load.searches:g} searches/s at the peak, {load.average:.0%}"
        f" of that on average, need, at {USED:.0%} CPU:"
    )
    yield ""
    for name, cores in needs.cores.items():
        yield f"  {name:<14}{cores:8.2f} cores"
    yield f"  {'all':<14}{sum(needs.cores.values()):8.2f} cores"
    yield ""
    yield f"  API processes          {needs.api:>8}   MEMLANE_API_PROCESSES"
    yield f"  worker processes       {needs.workers:>8}   MEMLANE_WORKERS"
    yield f"  database connections   {needs.connections:>8}   max_connections of PostgreSQL"
    yield f"  memory of processes    {needs.processes_gb:>8.1f} GB"
    yield f"  vectors, {load.days:>4} days   {needs.index_gb:>8.1f} GB or more of memory"
    yield f"  disk of PostgreSQL     {needs.disk_gb_a_day:>8.2f} GB a day"
    yield f"    stage outputs        {needs.outputs_gb:>8.1f} GB   MEMLANE_RETENTION_DAYS"
    yield f"    after {load.days:>4} days      {needs.disk_gb:>8.1f} GB"
    yield ""
    yield f"  Size first: {needs.first}."
    times = "" if load.cpu == 1 else f", times {load.cpu:g}"
    yield f"  CPU time: as recorded on {RECORDED}{times}."


def show(
    events: Annotated[float, typer.Option(min=0, help="Events per second at the peak.")] = 10,
    searches: Annotated[float, typer.Option(min=0, help="Searches per second at the peak.")] = 10,
    average: Annotated[
        float, typer.Option(min=0, max=1, help="The average load as a share of the peak.")
    ] = 0.2,
    model_s: Annotated[
        float, typer.Option("--model-s", min=0, help="Seconds of all model calls of an event.")
    ] = 3,
    dimensions: Annotated[int, typer.Option(min=1, help="Dimensions of the embedder.")] = 1_536,
    memories_each: Annotated[
        float, typer.Option("--memories-each", min=0, help="Memories that an event adds.")
    ] = 0.5,
    days: Annotated[int, typer.Option(min=1, help="Days for which disk is planned.")] = 365,
    cpu: Annotated[
        float,
        typer.Option(min=0.1, help="CPU time on your machines, as a multiple of the recorded one."),
    ] = 1,
) -> None:
    """Print the cores, processes, connections, memory and disk that a load needs."""
    load = PlannedLoad(events, searches, average, model_s, dimensions, memories_each, days, cpu)
    print("\n".join(lines(load, plan(load))))
