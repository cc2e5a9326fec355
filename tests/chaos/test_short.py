"""Chaos run of one minute: kill every process, freeze a worker, flush the broker; then check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos_monkey import Act
from tests.support.chaos_run import ChaosPlan, run
from tests.support.stack import Stack

ACTS = (
    *(Act.KILL_WORKER,) * 4,
    *(Act.KILL_API,) * 2,
    Act.KILL_SWEEPER,
    Act.KILL_REDIS,
    Act.KILL_POSTGRES,
    Act.KILL_CHROMA,
    Act.FREEZE_WORKER,
    Act.FLUSH_BROKER,
    Act.DOUBLE_HINTS,
    Act.SHUFFLE_HINTS,
    Act.DELETE_HINTS,
)


async def test_whatever_dies_nothing_is_lost_nothing_done_twice_and_all_in_order(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = {"MEMLANE_WORKERS": "2", "MEMLANE_WORKER_CONCURRENCY": "8"}
    seed = int(request.config.getoption("chaos_seed", 0))
    plan = ChaosPlan(scopes=60, turns=5, acts=ACTS, callers=12, most_open=60, seed=seed)
    with Stack(tmp_path / "stack", settings) as stack:
        report = await run(stack, plan)
    print(report.figures)
    assert report.proven, f"\n{report}"
    assert report.figures["graphs"].keys() == {"SUCCEEDED", "none"}
    assert sum(report.figures["acts"].values()) == len(ACTS)
