"""State of the scopes that a search reads: unfinished events, and relations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.events import progress
from pipeline.events.store import LaneStates
from tests.support.engine import Engine

MOST = 2


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bounds that a few events reach; each test builds its own queries."""
    monkeypatch.setattr(progress, "MOST_PENDING", MOST)
    monkeypatch.setattr(progress, "MOST_LANES", MOST)
    progress.lane_states_query.cache_clear()
    yield
    progress.lane_states_query.cache_clear()


async def lane_states(engine: Engine, **ids: str) -> LaneStates:
    return await engine.ledger.events.lane_states(engine.project.id, ids, embedder="fake/hash")


async def add_in_runs(engine: Engine, runs: int) -> None:
    """Add an event in this many runs of one agent."""
    for number in range(runs):
        scope = Scope(engine.project.id, agent_id="helper", run_id=f"run {number}")
        await engine.send(scope, [Message(Role.USER, "I live in Berlin.")])


async def test_unfinished_events_are_counted_up_to_the_bound(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    assert (await lane_states(engine, user_id="maya")).pending == 1
    await engine.add("I like jazz.")
    await engine.add("I like tea.")
    assert (await lane_states(engine, user_id="maya")).pending == MOST
    await engine.drain()
    assert (await lane_states(engine, user_id="maya")).pending == 0


async def test_relations_of_a_few_scopes_are_looked_up(engine: Engine) -> None:
    assert not (await lane_states(engine, user_id="maya")).related
    await engine.add("I live in Berlin.")
    await engine.drain()
    assert (await lane_states(engine, user_id="maya")).related
    assert not (await lane_states(engine, user_id="other")).related


async def test_very_many_scopes_count_as_related(engine: Engine) -> None:
    await add_in_runs(engine, MOST)
    assert not (await lane_states(engine, agent_id="helper")).related
    await add_in_runs(engine, MOST + 1)
    assert (await lane_states(engine, agent_id="helper")).related
