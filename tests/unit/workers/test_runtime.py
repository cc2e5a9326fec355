"""Stages in a worker process: limited in number, and all finished before the process stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock
from uuid import uuid4

import pytest
from pydantic import SecretStr

from pipeline import bootstrap
from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint
from pipeline.ports import Embedder
from pipeline.settings import Settings
from workers import runtime as runtimes
from workers.quarantine import proof_s
from workers.runtime import Heartbeat, Runtime

NOWHERE = SecretStr("postgresql://nobody@127.0.0.1:9/none")
HINT = Hint(uuid4(), 1, StageName.EXTRACT)
NEXT = Hint(HINT.lane_id, 1, StageName.RETRIEVE)
SOON_S = 10


class Stages:
    """Stages that run until the test ends them."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ends = threading.Semaphore(0)
        self.following = NEXT

    async def run(self, _: Hint, **__: Any) -> Hint:
        self.begun.release()
        await asyncio.to_thread(self.ends.acquire)
        return self.following


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    stages = Stages()
    monkeypatch.setattr(runtimes, "run_stage", stages.run)
    return stages


@pytest.fixture(autouse=True)
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the embedders that were loaded before a stage needed them."""
    names: list[str] = []

    async def note(embedder: Embedder) -> None:
        names.append(embedder.name)

    monkeypatch.setattr(bootstrap, "warm_embedder", note)
    return names


@pytest.fixture
def runtime(stages: Stages) -> Iterator[Runtime]:
    made = Runtime(Settings(database_url=NOWHERE, vectors="pgvector", worker_concurrency=2), "w")
    yield made
    made.close()


def test_a_stage_that_a_caller_waits_for_is_followed_without_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages: list[StageName] = []

    async def run(hint: Hint, **_: Any) -> Hint | None:
        stages.append(hint.stage)
        return {
            StageName.EXTRACT: replace(NEXT, at_once=True),
            StageName.RETRIEVE: Hint(HINT.lane_id, 1, StageName.APPLY),
        }[hint.stage]

    monkeypatch.setattr(runtimes, "run_stage", run)
    runtime = Runtime(Settings(database_url=NOWHERE, vectors="pgvector"), "w")
    published: list[Hint] = []
    runtime.begin(HINT, published.append)
    runtime.finish()
    runtime.close()
    assert stages == [StageName.EXTRACT, StageName.RETRIEVE]
    assert [hint.stage for hint in published] == [StageName.APPLY]


def test_the_first_stage_begins_to_load_the_embedder(
    runtime: Runtime, stages: Stages, warmed: list[str]
) -> None:
    assert warmed == []
    for _ in range(2):
        stages.ends.release()
        runtime.begin(HINT, lambda _: None)
    runtime.finish()
    assert warmed == ["local/minilm"]


def test_a_worker_has_a_share_of_places_for_low_priority(
    runtime: Runtime, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = runtime._services.ledger.lanes
    monkeypatch.setattr(type(lanes), "is_low", AsyncMock(return_value=False))
    assert runtime.low_fits()
    raised: list[Hint] = []
    stages.following = replace(NEXT, low=True)
    runtime.begin(replace(HINT, low=True), raised.append)
    assert not runtime.low_fits()  # one of two places
    stages.ends.release()
    runtime.finish()
    assert runtime.low_fits()
    assert [hint.low for hint in raised] == [False]  # an add has raised the lane's priority


def test_low_priority_has_few_places_beside_other_stages(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=NOWHERE, vectors="pgvector", worker_concurrency=8)
    runtime = Runtime(settings, "w")
    clock = Mock(return_value=100.0)
    monkeypatch.setattr(runtimes, "time", SimpleNamespace(monotonic=clock))
    low = replace(HINT, low=True)
    runtime.begin(low, lambda _: None)
    assert runtime.low_fits()  # two places
    runtime.begin(HINT, lambda _: None)
    assert not runtime.low_fits()
    for _ in range(2):
        stages.ends.release()
    runtime.finish()
    runtime.begin(low, lambda _: None)
    assert not runtime.low_fits()  # the other stage has ended a moment ago
    clock.return_value += runtimes.QUIET_S + 1
    assert runtime.low_fits()
    stages.ends.release()
    runtime.finish()
    runtime.close()


def test_a_worker_without_room_takes_no_more(runtime: Runtime, stages: Stages) -> None:
    """`begin` blocks when the last slot is taken, and returns when a stage ends."""
    following: list[Hint] = []
    runtime.begin(HINT, following.append)
    second = threading.Thread(target=runtime.begin, args=(HINT, following.append))
    second.start()
    assert all(stages.begun.acquire(timeout=SOON_S) for _ in range(2))
    assert second.is_alive()
    assert runtime.taken - runtime.done == 2
    stages.ends.release()
    second.join(SOON_S)
    assert not second.is_alive()
    stages.ends.release()
    runtime.finish()
    assert following == [NEXT, NEXT]
    assert runtime.taken == runtime.done == 2


def test_a_stage_that_raises_gives_its_room_back(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: Hint, **__: Any) -> Hint:
        raise KeyError

    monkeypatch.setattr(runtimes, "run_stage", broken)
    following: list[Hint] = []
    for _ in range(5):  # more than twice the number of slots
        runtime.begin(HINT, following.append)
    runtime.finish()
    assert following == []
    assert runtime.taken == runtime.done == 5


def test_the_stage_that_has_the_loop_is_named(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ends = threading.Event(), threading.Event()

    async def hanging(_: Hint, **__: Any) -> None:
        begun.set()
        ends.wait()  # blocks the event loop

    monkeypatch.setattr(runtimes, "run_stage", hanging)
    runtime.begin(HINT, lambda _: None)
    assert begun.wait(SOON_S)
    assert runtime.running() == str(HINT.lane_id)
    ends.set()
    runtime.finish()


def test_a_suspect_in_line_takes_no_place(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More suspects than slots may wait, and each slot is released only once."""
    ends = threading.Event()

    async def suspected(_: Hint, *, leases: Heartbeat, **__: Any) -> None:
        async with leases.alone(0):
            await asyncio.to_thread(ends.wait)

    monkeypatch.setattr(runtimes, "run_stage", suspected)
    for _ in range(5):
        runtime.begin(HINT, lambda _: None)
    assert runtime.taken - runtime.done == 5
    ends.set()
    runtime.finish()
    assert runtime.taken == runtime.done == 5


def test_a_suspect_waits_the_longer_the_more_workers_it_has_killed() -> None:
    assert [proof_s(crashes) for crashes in range(6)] == [1, 2, 4, 8, 16, 16]
    assert proof_s(10**6) == proof_s(5)
