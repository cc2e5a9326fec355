"""Chaos with external PostgreSQL, RabbitMQ and pgvector: nothing lost, doubled or reordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos_monkey import Act
from tests.support.chaos_run import ChaosPlan, run
from tests.support.fleet import servers
from tests.support.stack import Stack

ACTS = (
    *(Act.KILL_WORKER,) * 4,
    *(Act.KILL_API,) * 2,
    *(Act.KILL_REDIS,) * 2,  # the broker: here RabbitMQ
    *(Act.KILL_POSTGRES,) * 2,
    Act.KILL_SWEEPER,
    Act.FREEZE_WORKER,
)


@pytest.mark.timeout(600)
async def test_whatever_dies_nothing_is_lost_nothing_done_twice_and_all_in_order(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = int(request.config.getoption("chaos_seed", 0))
    plan = ChaosPlan(scopes=60, turns=5, acts=ACTS, callers=12, most_open=60, seed=seed)
    with servers(tmp_path) as outside:
        settings = {
            **outside.settings,
            "MEMLANE_WORKERS": "2",
            "MEMLANE_WORKER_CONCURRENCY": "8",
        }
        with Stack(tmp_path / "stack", settings) as stack:
            report = await run(
                stack, plan, {"redis": outside.rabbitmq, "postgres": outside.postgres}
            )
    print(report.figures)
    assert report.proven, f"\n{report}"
    assert sum(report.figures["acts"].values()) == len(ACTS)
