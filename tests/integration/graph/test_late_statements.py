"""Statements that arrive late: the graph of each time is the same for any order of arrival."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from itertools import permutations

import pytest
from sqlalchemy import text

from pipeline.stores import Ledger
from tests.integration.graph.stories import (
    Attentive,
    Stated,
    drawn,
    holding,
    likes,
    lives,
    noon,
    plays,
    stops,
    tell,
    works,
)
from tests.support.api_service import Service, serving

MOVES = (
    lives("Zoe", "Lyon", 0),
    lives("Zoe", "Graz", 10),
    lives("Zoe", "Bern", 20),
    lives("Zoe", "Riga", 30),
    works("Zoe", "Siemens", 5),
    works("Zoe", "Bosch", 25),
    likes("Zoe", "jazz", 3),
    likes("Zoe", "chess", 13),
)
RETURNS = (
    lives("Noor", "Porto", 0),
    lives("Noor", "Turin", 10),
    lives("Noor", "Porto", 20),
    likes("Noor", "tea", 4),
    likes("Noor", "tea", 24),
)
HABITS = (
    plays("Edda", "squash", 0),
    stops("Edda", "squash", 10),
    plays("Edda", "squash", 20, "plays again"),
)
LEFT = (
    plays("Edda", "squash", 0),
    plays("Edda", "chess", 5),
    stops("Edda", "squash", 10, "stopped playing"),
)
QUIT = stops("Edda", "squash", 30, "quit")
NICKNAME = (
    works("Halvor", "Siemens", 0),
    Stated("Halvor is also known as Bo.", ("Halvor", "also_known_as", "Bo"), 1, "nickname"),
    works("Bo", "Bosch", 10),
)
ORDERS = 12


# Each memory is a statement of a conflict.
OPEN_CONFLICT = """
    WITH conflict AS (
        INSERT INTO conflicts (id, project_id, lane_id, slot, event_id)
        SELECT gen_random_uuid(), project_id, lane_id, 'halvor/employer', event_id
        FROM memories ORDER BY id LIMIT 1
        RETURNING id
    )
    INSERT INTO conflict_members (conflict_id, memory_id, against_id, lane_id, text_hash)
    SELECT c.id, m.id, o.id, m.lane_id, m.text_hash
    FROM conflict c, memories m JOIN memories o ON o.id <> m.id
"""


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


def shuffled(story: Sequence[Stated], seed: int) -> list[Stated]:
    order = list(story)
    random.Random(seed).shuffle(order)
    return order


async def wrong_reads(service: Service, story: Sequence[Stated], user_id: str) -> list[str]:
    """The reads of the past and of now that differ from the story."""
    days = sorted({statement.day for statement in story})
    wrong = []
    for day in (days[0] - 1, *(day + 2 for day in days)):
        edges = await drawn(service, user_id, valid_at=noon(day))
        if sorted(edges) != sorted(holding(story, day)):
            wrong.append(f"day {day}: {sorted(edges)}")
    if sorted(now := await drawn(service, user_id)) != sorted(holding(story, days[-1])):
        wrong.append(f"now: {sorted(now)}")
    return wrong


@pytest.mark.parametrize("seed", range(ORDERS))
@pytest.mark.parametrize("story", [MOVES, RETURNS], ids=["moves", "returns"])
async def test_the_past_is_the_same_in_any_order_of_arrival(
    service: Service, story: Sequence[Stated], seed: int
) -> None:
    service.engine.with_model(Attentive(story))
    order = shuffled(story, seed)
    for statement in order:
        await tell(service, statement, user_id="maya")
    arrivals = [f"{statement.edge[2]} {statement.day}" for statement in order]
    assert await wrong_reads(service, story, "maya") == [], arrivals


@pytest.mark.parametrize("linked", [True, False], ids=["linked", "apart"])
@pytest.mark.parametrize("order", list(permutations(LEFT)))
async def test_an_end_that_arrives_before_its_beginning_ends_it(
    service: Service, order: Sequence[Stated], linked: bool
) -> None:
    service.engine.with_model(Attentive(LEFT, linked=linked))
    for statement in order:
        await tell(service, statement, user_id="maya")
    assert await wrong_reads(service, LEFT, "maya") == []


async def test_a_late_end_leaves_what_was_said_again_and_its_undo_restores_the_relation(
    service: Service,
) -> None:
    service.engine.with_model(Attentive((*HABITS, QUIT), linked=True))
    first, end, again = HABITS
    for statement in (first, again):
        await tell(service, statement, user_id="maya")
    event_id = await tell(service, end, user_id="maya")
    assert await wrong_reads(service, HABITS, "maya") == []
    await tell(service, QUIT, user_id="maya")
    assert await wrong_reads(service, (*HABITS, QUIT), "maya") == []
    answer = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert answer.status_code == 200, answer.text
    assert await wrong_reads(service, (first, again, QUIT), "maya") == []


@pytest.mark.parametrize("order", list(permutations(NICKNAME)))
async def test_another_name_joins_two_time_lines_until_the_later_statement_is_undone(
    service: Service, order: Sequence[Stated]
) -> None:
    service.engine.with_model(Attentive(NICKNAME))
    events = {statement.edge: await tell(service, statement, user_id="maya") for statement in order}
    first, named, later = NICKNAME
    joined = ("Halvor", "works_at", "Bosch")
    for day, expected in ((5, first.edge), (12, joined)):
        edges = await drawn(service, "maya", valid_at=noon(day))
        assert set(edges) == {named.edge, expected}, order
    path = f"/v1/event/{events[later.edge]}/undo/"
    assert (await service.client.post(path, json={})).status_code == 200
    assert set(await drawn(service, "maya")) == {named.edge, first.edge}


async def test_another_name_ends_nothing_of_a_value_in_a_conflict(
    service: Service, ledger: Ledger
) -> None:
    service.engine.with_model(Attentive(NICKNAME))
    first, named, later = NICKNAME
    for statement in (first, later):
        await tell(service, statement, user_id="maya")
    async with ledger.engine.begin() as connection:
        await connection.execute(text(OPEN_CONFLICT))
    await tell(service, named, user_id="maya")
    both = {first.edge, named.edge, ("Halvor", "works_at", "Bosch")}
    assert set(await drawn(service, "maya")) == both


async def test_an_end_of_another_scope_or_of_a_deleted_memory_ends_nothing(
    service: Service,
) -> None:
    service.engine.with_model(Attentive(LEFT))
    first, _, end = LEFT
    await tell(service, end, user_id="noor")
    await tell(service, end, user_id="maya")
    [memory] = (await service.client.get("/v1/memories/?user_id=maya")).json()
    assert (await service.client.delete(f"/v1/memories/{memory['id']}/")).status_code == 200
    await tell(service, first, user_id="maya")
    assert await drawn(service, "maya") == [first.edge]
