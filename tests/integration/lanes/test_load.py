"""Load of the ledger, as admission control reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from pipeline import bootstrap
from pipeline.domain.errors import ModelUnavailable
from pipeline.lanes.load import MEASURED_OVER_S, LoadView
from pipeline.ports import Embedder
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine
from tests.support.troubled import Troubled


async def test_the_load_counts_what_waits_and_what_was_done(engine: Engine) -> None:
    view = LoadView(engine.ledger.engine)
    for n in range(3):
        await engine.add(f"I like dish {n}.", user_id="maya")
    await engine.add("I like jazz.", user_id="jon")
    load = await view.look(scope_events=3)
    assert load.projects == {engine.project.id: 4}
    assert load.deep == {engine.scope("maya").lane_id: 3}
    assert load.lanes == {(engine.project.id, False): 2}
    assert (load.ready, load.drained_per_s) == (4, 0)
    await engine.drain()
    load = await view.look(scope_events=3)
    assert (load.projects, load.deep, load.ready) == ({}, {}, 0)
    assert load.drained_per_s == 0.4  # 4 events in the last 10 s


async def test_a_backlog_is_work_that_was_ready_all_the_while(engine: Engine) -> None:
    view = LoadView(engine.ledger.engine)
    await engine.add("I like jazz.")
    assert not (await view.look(scope_events=9)).backlogged
    await engine.age(MEASURED_OVER_S)
    assert (await view.look(scope_events=9)).backlogged
    await engine.drain()
    assert not (await view.look(scope_events=9)).backlogged


async def test_what_waits_for_a_model_is_no_backlog(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    await engine.add("I like jazz.")
    await engine.drain()
    await engine.add("I like bossa.")
    await engine.age(MEASURED_OVER_S)
    assert not (await LoadView(engine.ledger.engine).look(scope_events=9)).backlogged


async def test_where_nothing_drains_the_oldest_event_tells_the_lag(engine: Engine) -> None:
    view = LoadView(engine.ledger.engine)
    event = await engine.add("I like jazz.")
    await engine.age(600)
    assert 600 <= (await view.look(scope_events=9)).lag_s < 700
    await engine.ledger.cancellation.cancel(engine.project.id, event)
    load = await view.look(scope_events=9)
    assert (load.lag_s, load.drained_per_s) == (0, 0)  # a cancelled event does not count as done


async def test_an_installation_is_used_from_its_first_add_on(engine: Engine) -> None:
    view = LoadView(engine.ledger.engine)
    assert not await view.is_used()
    await engine.add("I like jazz.")
    assert await view.is_used()


async def test_a_process_loads_the_embedder_at_its_start_if_the_installation_is_used(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    async def note(embedder: Embedder) -> None:
        loaded.append(embedder.name)

    monkeypatch.setattr(bootstrap, "warm_embedder", note)
    stores = cast(
        "bootstrap.Stores", SimpleNamespace(ledger=engine.ledger, embedder=HashEmbedder())
    )
    await bootstrap.warm_used_embedder(stores)
    assert loaded == []  # it takes memory that may never be used
    await engine.add("I like jazz.")
    await bootstrap.warm_used_embedder(stores)
    assert loaded == [HashEmbedder().name]
