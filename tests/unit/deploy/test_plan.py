"""`memlane plan`: what a load needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.cli.plan import (
    API_MB,
    AT_ONCE,
    DAY_S,
    EVENT_BYTES,
    EVENT_MS,
    GB,
    MEMORY_BYTES,
    RECORDED,
    SEARCH_MS,
    SWEEPER_MB,
    WORKER_MB,
    PlannedLoad,
    lines,
    plan,
)
from tests.bench.growth.fill import VECTOR_BYTES

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS, PAGE = ROOT / "docs/benchmarks", ROOT / "docs/howto/capacity.md"
# Names of the programs in a recording.
PROGRAMS = {
    "API": "api", "workers": "worker", "PostgreSQL": "postgres", "vector store": "chroma",
    "sweeper": "sweeper",
}  # fmt: skip

LOAD = PlannedLoad(
    events=100, searches=50, average=0.2, model_s=3, dimensions=1_536, memories_each=0.5, days=365
)

PAGE_LOAD = replace(LOAD, searches=100)


def test_needs_grow_in_proportion_to_the_load() -> None:
    small, large = plan(LOAD), plan(replace(LOAD, events=1_000, searches=500))
    assert large.cores == pytest.approx({name: 10 * cores for name, cores in small.cores.items()})
    assert large.disk_gb == pytest.approx(10 * small.disk_gb)
    assert large.index_gb == pytest.approx(10 * small.index_gb)
    assert large.connections > 5 * small.connections


def test_a_slow_model_needs_more_workers_and_no_more_cores() -> None:
    quick, slow = plan(replace(LOAD, model_s=0)), plan(replace(LOAD, model_s=30))
    assert slow.cores == quick.cores
    assert slow.workers == LOAD.events * 30 / AT_ONCE > quick.workers


def test_disk_holds_rows_and_vectors_of_all_days_and_outputs_of_the_retention() -> None:
    bare = replace(LOAD, dimensions=1, memories_each=0)
    with_vectors = plan(replace(bare, dimensions=1_001))
    a_day = LOAD.events * LOAD.average * DAY_S * 4 * 1_000 / GB
    assert round(with_vectors.disk_gb_a_day - plan(bare).disk_gb_a_day, 6) == round(a_day, 6)
    assert plan(bare, retention_days=30).outputs_gb == 30 * plan(bare, retention_days=1).outputs_gb
    assert plan(replace(bare, days=1)).outputs_gb == plan(bare, retention_days=1).outputs_gb


def test_nothing_to_do_still_needs_one_process_of_each() -> None:
    needs = plan(replace(LOAD, events=0, searches=0))
    assert (needs.api, needs.workers) == (1, 1)


def test_the_command_prints_the_plan() -> None:
    done = CliRunner().invoke(app, ["plan", "--events", "100", "--searches", "50"])
    assert done.exit_code == 0
    assert "100 events/s and 50 searches/s at the peak" in done.output
    assert f"{plan(LOAD).workers}   MEMLANE_WORKERS" in done.output


@pytest.fixture(scope="module")
def recording() -> Mapping[str, Any]:
    return dict(json.loads((BENCHMARKS / "hosted.json").read_text("utf-8")))


def test_cpu_times_are_those_of_the_newest_recording(recording: Mapping[str, Any]) -> None:
    runs = recording["benches"]
    event = runs["drain-default"]["distinct_users"]["cpu_ms_per_event"]
    search = runs["search-chroma"]["16_callers"]["cpu_ms"]
    assert recording["at"] == RECORDED
    for planned, measured in ((EVENT_MS, event), (SEARCH_MS, search)):
        assert planned == {
            program: round(measured.get(name, 0), 1) for program, name in PROGRAMS.items()
        }


def test_memory_of_processes_is_that_of_the_newest_recording(recording: Mapping[str, Any]) -> None:
    def largest(program: str) -> int:
        runs = (recording["benches"][name]["rss_mb"] for name in ("search-chroma", "drain-default"))
        return max(int(mb) for run in runs for name, mb in run.items() if name.startswith(program))

    measured = [round(largest(program), -1) for program in ("api", "worker", "sweeper")]
    assert measured == [API_MB, WORKER_MB, SWEEPER_MB]


def test_disk_covers_the_recorded_growth() -> None:
    """The recording fills one of five stages, so the plan is larger, but not by half."""
    run = max(
        json.loads((BENCHMARKS / "growth.json").read_text("utf-8")),
        key=lambda each: int(each["memories"]),
    )
    vectors = run["memories"] * VECTOR_BYTES
    recorded = sum(run["tables"].values()) - vectors
    planned = run["events"] * EVENT_BYTES + run["memories"] * MEMORY_BYTES
    assert 1 < planned / recorded < 1.5


def test_the_page_states_the_constants() -> None:
    page = PAGE.read_text("utf-8")
    event = "an event {API} ms API, {workers} workers, {PostgreSQL} PostgreSQL, "
    search = "a search {API}, {workers:g}, {PostgreSQL}, {vector store}, {sweeper}"
    for words in (
        event.format_map(EVENT_MS)
        + "{vector store} Chroma, {sweeper} sweeper".format_map(EVENT_MS),
        search.format_map(SEARCH_MS),
        f"{API_MB} MB × API + {WORKER_MB} MB × workers",
        f"events × ({EVENT_BYTES:,} bytes + memories × {MEMORY_BYTES:,})",
        f"recorded on {RECORDED}",
    ):
        assert words in page


def test_the_page_states_what_the_command_prints() -> None:
    page = PAGE.read_text("utf-8")
    assert "\n".join(lines(PAGE_LOAD, plan(PAGE_LOAD))) in page
    for events in (10, 100, 1_000):
        needs = plan(replace(PAGE_LOAD, events=events, searches=events))
        cells = [row.split("|")[2 + (10, 100, 1_000).index(events)].strip() for row in table(page)]
        assert cells == [
            f"{sum(needs.cores.values()):.1f}",
            str(needs.api),
            str(needs.workers),
            f"{needs.connections:,}",
            f"{needs.processes_gb:.1f}",
            f"{needs.index_gb:,.0f}",
            f"{needs.disk_gb_a_day:.1f}",
            f"{needs.outputs_gb:,.0f}",
        ]


def table(page: str) -> list[str]:
    """Rows of the page's table of examples."""
    rows = page.partition("| events/s at the peak |")[2].partition("\n\n")[0]
    return rows.splitlines()[2:]


def test_slower_machines_need_more_cores_and_no_more_disk() -> None:
    slow = plan(replace(LOAD, cpu=2))
    assert slow.cores == {name: 2 * cores for name, cores in plan(LOAD).cores.items()}
    assert slow.disk_gb == plan(LOAD).disk_gb
