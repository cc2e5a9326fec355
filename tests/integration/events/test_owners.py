"""Pages of the events of an owner, whose lanes are read in the order of their last use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.domain.events import FailureCode
from pipeline.domain.filters import EventFilter
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.events import owners, store
from pipeline.events.owners import count_of_owner, page_of_owner
from pipeline.ledger.statements import Direct
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
MIDDLE = datetime.fromisoformat("2026-01-01T00:05:00+00:00")
END = """
    UPDATE events SET status = :status, completed_at = now(), failure_code = :code,
        event_type = :kind
    WHERE id = :id
"""
KIND = "UPDATE events SET event_type = :kind WHERE id = :id"
# The lanes with open events stay busy; what has ended before these is settled.
SETTLE = """
    UPDATE lanes SET settled_seq = coalesce(open.first - 1, accepted_seq),
        state = CASE WHEN open.first IS NULL THEN 'IDLE' ELSE 'QUEUED' END,
        due_at = CASE WHEN open.first IS NOT NULL THEN now() END
    FROM (SELECT l.id, (SELECT min(seq) FROM events WHERE lane_id = l.id AND completed_at IS NULL)
        AS first FROM lanes l) open
    WHERE open.id = lanes.id
"""
KINDS: list[list[str]] = [[], ["ADD"], ["EXPORT"], ["IMPORT", "EXPORT"], ["ADD", "IMPORT"]]
PERIODS: list[dict[str, datetime]] = [{}, {"lte": MIDDLE}, {"gte": MIDDLE}]
CODES = (None, FailureCode.DEADLINE, FailureCode.POISON_CRASH)
STATUSES: list[list[str]] = [
    [], ["PENDING"], ["PENDING", "RUNNING"], ["SUCCEEDED"], ["FAILED", "CANCELLED"], ["CANCELLED"],
    ["PENDING", "FAILED", "CANCELLED"], ["SUCCEEDED", "FAILED"],
]  # fmt: skip
EXPECTED = """
    SELECT e.id FROM events e JOIN lanes l ON l.id = e.lane_id
    WHERE l.agent_id = 'helper' ORDER BY e.created_at DESC, e.id
"""


async def add(engine: Engine, **ids: str) -> None:
    await engine.send(Scope(engine.project.id, **ids), [Message(Role.USER, "I live in Berlin.")])


async def fill(engine: Engine) -> list[UUID]:
    """Add events in the runs of an agent, and one of another. Returns their order."""
    for number in range(RUNS * EACH):
        await add(engine, agent_id="helper", run_id=f"run {number % RUNS:02}")
    await add(engine, agent_id="other", run_id="run 99")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text(OLDER))
        await connection.execute(text(LAST_USE))
        return list(await connection.scalars(text(EXPECTED)))


async def page(
    engine: Engine, wanted: EventFilter = WANTED, *, limit: int, offset: int = 0
) -> tuple[Sequence[UUID], bool]:
    return await page_of_owner(
        Direct(engine.ledger.engine), engine.project.id, wanted, limit=limit, offset=offset
    )


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
            assert await page(engine, limit=limit, offset=offset) == (expected, True)


async def used_together(engine: Engine) -> list[UUID]:
    """Fill, with one time of use for all lanes: then none can be read before others."""
    ordered = await fill(engine)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET accepted_at = now()"))
    return ordered


async def test_pages_are_the_same_if_too_many_lanes_would_be_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "SPARE_LANES", 0)
    monkeypatch.setattr(owners, "MOST_LANES", 3)
    ordered = await used_together(engine)
    events = engine.ledger.events
    shown = await events.page(engine.project.id, WANTED, limit=2, offset=4)
    assert [view.id for view in shown.rows] == ordered[4:6]
    assert shown.count >= 6
    assert shown.bounded == ["count"]


async def test_a_page_that_may_lack_events_says_so(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "SPARE_LANES", 0)
    monkeypatch.setattr(owners, "MOST_LANES", 3)
    monkeypatch.setattr(owners, "COUNTED", 0)
    monkeypatch.setattr(owners, "MOST_EVENTS", 0)
    monkeypatch.setattr(store, "COUNTED", 0)
    ordered = await used_together(engine)
    await add(engine, agent_id="other", run_id="run 98")
    events = engine.ledger.events
    shown = await events.page(engine.project.id, WANTED, limit=3, offset=4)
    # Of the 8 newest events of the project, two are another agent's.
    seen = [view.id for view in shown.rows]
    assert seen == ordered[4:6]
    assert shown.bounded == ["count", "results"]


async def various(engine: Engine) -> list[UUID]:
    """Fill, with events of many kinds, statuses and codes, also open ones and another owner's."""
    ordered = await fill(engine)
    ends = {1: ("FAILED", "DEADLINE"), 2: ("CANCELLED", "CANCELLED"), 3: ("FAILED", "INTERNAL")}
    async with engine.ledger.engine.begin() as connection:
        for place, key in enumerate(ordered):
            status, code = ends.get(place % 7, ("SUCCEEDED", None))
            kind = {0: "EXPORT", 5: "IMPORT"}.get(place % 11, "ADD")
            values = {"id": key, "status": status, "code": code, "kind": kind}
            if place % 5:
                await connection.execute(text(END), values)
            else:
                await connection.execute(text(KIND), values)
        await connection.execute(text(SETTLE))
    return ordered


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("code", CODES)
async def test_any_filter_has_the_pages_and_the_count_of_all_its_events(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: bool, code: FailureCode | None
) -> None:
    if few:
        monkeypatch.setattr(owners, "SPARE_LANES", 0)
        monkeypatch.setattr(owners, "FEW_LANES", 2)
    ordered = await various(engine)
    async with engine.ledger.engine.connect() as connection:
        rows = {row.id: row for row in await connection.execute(text("SELECT * FROM events"))}
    for kinds, statuses, created in product(KINDS, STATUSES, PERIODS):
        wanted = EventFilter(WANTED.scope_ids, kinds, statuses, created, code)
        expected = [key for key in ordered if matches(rows[key], wanted)]
        for offset in (0, 3):
            part = (expected[offset : offset + 3], True)
            assert await page(engine, wanted, limit=3, offset=offset) == part, wanted
        number = await count_of_owner(
            Direct(engine.ledger.engine), engine.project.id, wanted, most=1_000
        )
        assert number == (len(expected), True), wanted


@pytest.mark.parametrize("code", CODES)
async def test_owners_with_too_many_lanes_lack_nothing_if_their_project_has_few_such_events(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, code: FailureCode | None
) -> None:
    """Only the count of common events is bounded, by the lanes."""
    bounds = {"SPARE_LANES": 0, "FEW_LANES": 1, "MOST_LANES": 2, "MOST_EVENTS": 0}
    for bound, value in bounds.items():
        monkeypatch.setattr(owners, bound, value)
    ordered = await various(engine)
    project_id = engine.project.id
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET accepted_at = now()"))
        rows = {row.id: row for row in await connection.execute(text("SELECT * FROM events"))}
    for kinds, statuses, created in product(KINDS, STATUSES, PERIODS):
        wanted = EventFilter(WANTED.scope_ids, kinds, statuses, created, code)
        expected = [key for key in ordered if matches(rows[key], wanted)]
        part = (expected[3:6], True)
        assert await page(engine, wanted, limit=3, offset=3) == part, wanted
        number = await count_of_owner(Direct(engine.ledger.engine), project_id, wanted, most=1_000)
        common = not code and "ADD" in (kinds or ["ADD"])
        if not common or (statuses and "SUCCEEDED" not in statuses):
            assert number == (len(expected), True), wanted
        assert number[0] <= len(expected)


@pytest.mark.parametrize("beyond", [0, 1, 4])
async def test_what_a_bounded_page_shows_is_the_beginning_of_the_whole(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    bounds = {
        "SPARE_LANES": 0,
        "FEW_LANES": 1,
        "MOST_LANES": 2,
        "COUNTED": beyond,
        "MOST_EVENTS": 0,
    }
    for bound, value in bounds.items():
        monkeypatch.setattr(owners, bound, value)
    ordered = await various(engine)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET accepted_at = now()"))
        rows = {row.id: row for row in await connection.execute(text("SELECT * FROM events"))}
    bounded = 0
    for kinds, statuses, created in product(KINDS, STATUSES, PERIODS):
        wanted = EventFilter(WANTED.scope_ids, kinds, statuses, created)
        expected = [key for key in ordered if matches(rows[key], wanted)][:3]
        ids, whole = await page(engine, wanted, limit=3)
        assert ids == (expected if whole else expected[: len(ids)]), wanted
        bounded += not whole
    assert bounded


def matches(row: Any, wanted: EventFilter) -> bool:
    """Tell if an event has the kind, status, time and code of a filter."""
    early = wanted.created.get("lte", row.created_at)
    late = wanted.created.get("gte", row.created_at)
    return (
        (not wanted.kinds or row.event_type in wanted.kinds)
        and (not wanted.statuses or row.status in wanted.statuses)
        and (not wanted.code or row.failure_code == wanted.code)
        and late <= row.created_at <= early
    )


async def test_a_count_of_many_is_a_lower_bound_and_says_so(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(engine)
    database, project_id = Direct(engine.ledger.engine), engine.project.id
    some = await count_of_owner(database, project_id, WANTED, most=7)
    assert some == (7, False)
    monkeypatch.setattr(owners, "MOST_LANES", 3)
    some = await count_of_owner(database, project_id, WANTED, most=1_000)
    assert some == (3 * EACH, False)


@pytest.mark.parametrize(
    "some", [EventFilter({}, statuses=["SUCCEEDED"]), EventFilter({}, kinds=["ADD"])]
)
async def test_a_count_passes_by_the_other_events_of_a_scope(
    engine: Engine, some: EventFilter
) -> None:
    for _ in range(12):
        await add(engine, user_id="maya")
    async with engine.ledger.engine.begin() as connection:
        others = "UPDATE events SET status = 'FAILED', event_type = 'EXPORT', completed_at = now()"
        await connection.execute(text(f"{others} WHERE seq > 3"))
        done = "UPDATE events SET status = 'SUCCEEDED', completed_at = now() WHERE seq <= 3"
        await connection.execute(text(done))
    wanted = replace(some, scope_ids={"user_id": "maya"})
    count = await count_of_owner(Direct(engine.ledger.engine), engine.project.id, wanted, most=10)
    assert count == (3, True)


async def test_no_event_is_newer_than_the_last_use_of_its_lane(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.add("I like tea.")
    async with engine.ledger.engine.begin() as connection:
        query = (
            "SELECT l.accepted_at = max(e.created_at) AND max(e.created_at) > min(e.created_at)"
            " FROM lanes l JOIN events e ON e.lane_id = l.id GROUP BY l.id"
        )
        assert list(await connection.scalars(text(query))) == [True]
