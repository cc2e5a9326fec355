"""Failover of Redis with Sentinel under load: nothing lost; the seconds until all is normal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.stack.check import CHECKS
from deploy.stack.waiting import wait_until
from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint
from pipeline.settings import Settings
from tests.support.chaos_ledger import LedgerWindow, database_url
from tests.support.sentinel import ELECTED_WITHIN_S, SentinelGroup
from tests.support.stack import Stack
from tests.support.until_normal import LATEST_S, Prober
from workers.app import make_app
from workers.dispatch import CeleryDispatcher
from workers.fair_queues import QUEUES

BEFORE_S, AFTER_S = 8.0, 30.0
MEMORIES = "SELECT user_id, count(*) AS memories FROM memories GROUP BY 1"


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentinelGroup]:
    with SentinelGroup(tmp_path_factory.mktemp("sentinel")) as made:
        yield made


def configured(group: SentinelGroup, **changes: str) -> Settings:
    given = {**group.settings, **changes}
    return Settings.model_validate(
        {name.removeprefix("MEMLANE_").lower(): value for name, value in given.items()}
    )


async def test_the_check_asks_the_master_and_names_what_is_wrong(group: SentinelGroup) -> None:
    assert (await CHECKS["broker"](configured(group))).refused == []
    for changes in (
        {"MEMLANE_BROKER_SENTINEL_MASTER": "nobody"},
        {"MEMLANE_BROKER_SENTINEL_PASSWORD": "a-secret"},
        {"MEMLANE_BROKER_URL": group.settings["MEMLANE_BROKER_URL"].replace("@", "x@")},
    ):
        (refused,) = (await CHECKS["broker"](configured(group, **changes))).refused
        assert refused.startswith("MEMLANE_BROKER_URL (127.0.0.1:")
        assert "secret" not in refused
        assert group.password not in refused


def test_hints_go_to_the_next_master(group: SentinelGroup) -> None:
    dispatcher = CeleryDispatcher(make_app(configured(group)))

    def published() -> bool:
        return dispatcher.publish(Hint(uuid4(), 0, StageName.EXTRACT), QUEUES[0])

    assert published()
    group.kill()
    assert wait_until(published, ELECTED_WITHIN_S)
    group.start()
    assert (dispatcher.backlog() or 0) >= 1
    dispatcher.forgot()
    assert not dispatcher.forgot()


@pytest.mark.timeout(600)
async def test_a_failover_under_load_loses_nothing(tmp_path: Path, group: SentinelGroup) -> None:
    settings = {**group.settings, "MEMLANE_WORKERS": "2"}
    async with Stack(tmp_path / "stack", settings) as stack:
        window = LedgerWindow(database_url(stack))
        prober, stopped = Prober([stack.url], stack.key), asyncio.Event()
        probing = asyncio.create_task(prober.run(stopped))
        await asyncio.sleep(BEFORE_S)
        fault_at = prober.now()
        limit_s = prober.limit_s(fault_at)
        await asyncio.to_thread(group.kill)
        await asyncio.to_thread(group.start)
        elected_s = round(prober.now() - fault_at, 1)
        await asyncio.sleep(AFTER_S)
        stopped.set()
        until = prober.now()
        await asyncio.wait_for(probing, LATEST_S)
        memories = {row["user_id"]: row["memories"] for row in await window.rows(MEMORIES)}
        await window.close()
    figures = {
        "probes": len(prober.probes),
        "lost": len(prober.lost()),
        "doubled": sum(number > 1 for number in memories.values()),
        "elected_s": elected_s,
        "normal_after_s": prober.normal_after_s(fault_at, until, limit_s),
        "slow_is_s": round(limit_s, 2),
    }
    print(figures)
    assert prober.lost() == []
    assert memories == {probe.user: 1 for probe in prober.probes}
    assert figures["normal_after_s"] < AFTER_S
