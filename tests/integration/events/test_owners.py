"""Pages of the events of an owner, whose lanes are read in the order of their last use."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.domain.events import AddOptions
from pipeline.domain.filters import EventFilter
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.events import owners
from pipeline.events.owners import page_of_owner
from pipeline.ingest.add import add_messages
from tests.support.engine import Engine

RUNS, EACH = 12, 4
WANTED = EventFilter({"agent_id": "helper"})
# Times with many ties, in another order than the numbers; a lane's time may be later than them.
OLDER = """
    UPDATE events SET created_at = timestamptz '2026-01-01' + interval '1 minute' * (
        (right(l.run_id, 2)::integer * 7 + events.seq * 5) % 11)
    FROM lanes l WHERE l.id = events.lane_id AND l.agent_id = 'helper'
"""
LAST_USE = """
    UPDATE lanes SET accepted_at = interval '1 minute' * (right(run_id, 2)::integer % 3) + (
        SELECT max(created_at) FROM events WHERE lane_id = lanes.id)
    WHERE agent_id = 'helper'
"""
EXPECTED = """
    SELECT e.id FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE l.agent_id = 'helper' ORDER BY e.created_at DESC, e.id
"""


async def add(engine: Engine, **ids: str) -> None:
    await add_messages(
        Scope(engine.project.id, **ids),
        [Message(Role.USER, "I live in Berlin.")],
        AddOptions(),
        said_at=None,
        ledger=engine.ledger,
        dispatcher=engine.hints,
    )


async def fill(engine: Engine) -> list[UUID]:
    """Add events in the runs of an agent, and one of another. Returns their order."""
    for number in range(RUNS * EACH):
        await add(engine, agent_id="helper", run_id=f"run {number % RUNS:02}")
    await add(engine, agent_id="other", run_id="run 99")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text(OLDER))
        await connection.execute(text(LAST_USE))
        return list(await connection.scalars(text(EXPECTED)))


async def page(engine: Engine, *, limit: int, offset: int = 0) -> list[UUID] | None:
    """Ids of a page, read by lanes."""
    project_id = engine.project.id
    ids = await page_of_owner(engine.ledger.engine, project_id, WANTED, limit=limit, offset=offset)
    return None if ids is None else list(ids)


@pytest.mark.parametrize(("spare", "wider"), [(0, 2), (1, 3), (100, 8)])
async def test_pages_are_exact_however_few_lanes_are_read_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, spare: int, wider: int
) -> None:
    monkeypatch.setattr(owners, "SPARE_LANES", spare)
    monkeypatch.setattr(owners, "WIDER", wider)
    ordered = await fill(engine)
    assert len(ordered) == RUNS * EACH
    for limit in (1, 5):
        for offset in range(0, len(ordered) + limit, limit):
            expected = ordered[offset : offset + limit]
            assert await page(engine, limit=limit, offset=offset) == expected


async def test_pages_are_the_same_if_too_many_lanes_would_be_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "SPARE_LANES", 0)
    monkeypatch.setattr(owners, "MOST_LANES", 3)
    monkeypatch.setattr(owners, "FEW_LANES", 3)
    ordered = await fill(engine)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET accepted_at = now()"))
    assert await page(engine, limit=2) is None
    events = engine.ledger.events
    views, count = await events.page(engine.project.id, WANTED, limit=2, offset=4)
    assert [view.id for view in views] == ordered[4:6]
    assert count >= 6


async def test_periods_are_read_by_lanes_and_rare_events_are_not(engine: Engine) -> None:
    ordered = await fill(engine)
    until = datetime.fromisoformat("2026-01-01T00:05:00+00:00")
    events, project_id = engine.ledger.events, engine.project.id
    period = EventFilter(WANTED.scope_ids, created={"lte": until})
    views, count = await events.page(project_id, period, limit=100, offset=0)
    assert count == len(views)
    assert [view.id for view in views] == ordered[-count:]
    assert max(view.created_at for view in views) == until
    pending = EventFilter(WANTED.scope_ids, statuses=["PENDING"])
    assert await page_of_owner(engine.ledger.engine, project_id, pending, limit=5, offset=0) is None
    views, count = await events.page(project_id, pending, limit=5, offset=0)
    assert [view.id for view in views] == ordered[:5]
    assert count == len(ordered)


@pytest.mark.parametrize(
    ("kinds", "statuses", "by_lanes"),
    [
        (["ADD"], [], True),
        (["ADD", "IMPORT"], ["SUCCEEDED", "FAILED"], True),
        ([], ["FAILED", "CANCELLED"], False),
        (["IMPORT"], ["SUCCEEDED"], False),
    ],
)
async def test_adds_and_events_that_succeeded_are_read_by_lanes(
    engine: Engine, kinds: list[str], statuses: list[str], by_lanes: bool
) -> None:
    ordered = await fill(engine)
    done = [key for place, key in enumerate(ordered) if place % 3]
    async with engine.ledger.engine.begin() as connection:
        end = text(
            "UPDATE events SET status = 'SUCCEEDED', completed_at = now() WHERE id = ANY(:ids)"
        )
        await connection.execute(end, {"ids": done})
    common = EventFilter(WANTED.scope_ids, kinds=kinds, statuses=statuses)
    ids = await page_of_owner(engine.ledger.engine, engine.project.id, common, limit=5, offset=3)
    assert (ids is not None) == by_lanes
    views, _ = await engine.ledger.events.page(engine.project.id, common, limit=5, offset=3)
    expected = (done if statuses else ordered) if by_lanes else []
    assert [view.id for view in views] == expected[3:8]


async def test_no_event_is_newer_than_the_last_use_of_its_lane(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.add("I like tea.")
    async with engine.ledger.engine.begin() as connection:
        query = (
            "SELECT l.accepted_at = max(e.created_at) AND max(e.created_at) > min(e.created_at)"
            " FROM lanes l JOIN events e ON e.lane_id = l.id GROUP BY l.id"
        )
        assert list(await connection.scalars(text(query))) == [True]
