"""`memlane plan`: what a load needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.cli.plan import AT_ONCE, DAY_S, GB, PlannedLoad, plan

LOAD = PlannedLoad(
    events=100, searches=50, average=0.2, model_s=3, dimensions=1_536, memories_each=0.5, days=365
)


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
