"""The books: accepted = succeeded + failed + cancelled + in flight, at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from pipeline.accounting.balance import Totals
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer
from pipeline.memories import service as memories
from tests.support.api_service import ADD, LIVES, SEARCH, Service, serving
from tests.support.engine import Engine
from tests.support.recount import drift
from tests.support.troubled import Troubled

NOTHING_PAID: dict[str, object] = {
    "calls": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cost_usd": None,
    "models": [],
    "days": [],
}
EMPTY = Totals(0, 0, 0, 0, 0, 0, 0, 0, 0.0)


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


async def books(engine: Engine) -> Totals:
    """Accounts of the project, with an age of 0: the real one depends on the clock."""
    totals = await engine.ledger.balance.totals(engine.project.id)
    return replace(totals, oldest_in_flight_s=0.0)


async def test_a_project_without_events_has_balanced_books(engine: Engine) -> None:
    assert await engine.ledger.balance.totals(engine.project.id) == EMPTY
    assert EMPTY.balanced


async def test_each_event_is_counted_where_it_is(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.add("I like tea.")
    assert await books(engine) == replace(EMPTY, adds=2, accepted=2, pending=2)
    await engine.step()
    assert await books(engine) == replace(EMPTY, adds=2, accepted=2, running=2)
    await engine.drain()
    assert await books(engine) == replace(EMPTY, adds=2, accepted=2, succeeded=2, memories=2)
    engine.with_model(Troubled(word="rye", error=MalformedAnswer("no JSON")))
    await engine.add("I like rye.")
    await engine.drain()
    assert await books(engine) == replace(
        EMPTY, adds=3, accepted=3, succeeded=2, failed=1, memories=2
    )


async def test_the_age_is_that_of_the_oldest_event_in_flight(engine: Engine) -> None:
    await engine.add("I like jazz.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE events SET created_at = now() - interval '90 s'"))
    await engine.add("I like tea.")
    totals = await engine.ledger.balance.totals(engine.project.id)
    assert 90 <= totals.oldest_in_flight_s < 120


async def test_the_books_balance_at_every_look_while_all_is_in_motion(service: Service) -> None:
    """Adds, stages, cancels and replays run at once, while a client keeps reading the figures."""
    engine = service.engine
    engine.with_model(Troubled(word="poison", error=MalformedAnswer("no JSON")))
    seen: list[bool] = []
    over = asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            answer = (await service.client.get("/v1/stats/")).json()
            parts = ("succeeded", "failed", "cancelled", "pending", "running")
            assert answer["accepted"] == sum(answer[part] for part in parts)
            seen.append(answer["identity"])

    async def live(turn: int) -> None:
        word = "poison" if turn % 5 == 0 else "jazz"
        body = LIVES | {"messages": f"I like {word} {turn}.", "user_id": f"user-{turn % 4}"}
        accepted = (await service.client.post(ADD, json=body)).json()
        if turn % 3 == 0:
            await service.client.post(f"/v1/event/{accepted['event_id']}/cancel/")
        if turn % 2 == 0:
            await engine.drain()
            await service.client.post(f"/v1/event/{accepted['event_id']}/replay/")

    looking = asyncio.create_task(look())
    for start in range(0, 40, 8):
        await asyncio.gather(*(live(turn) for turn in range(start, start + 8)))
    engine.with_model(RulesModel())
    await engine.drain()
    over.set()
    await looking
    assert len(seen) > 10
    assert all(seen)
    last = (await service.client.get("/v1/stats/")).json()
    assert (last["accepted"], last["pending"], last["running"]) == (40, 0, 0)


async def test_folding_beside_everything_changes_no_figure(engine: Engine) -> None:
    """Several sweepers fold while events are accepted and processed; every read is exact."""
    over = asyncio.Event()

    async def fold() -> None:
        while not over.is_set():
            await engine.ledger.balance.fold()

    async def look() -> None:
        while not over.is_set():
            assert await drift(engine.ledger.engine) == []

    beside = [asyncio.create_task(task()) for task in (fold, fold, look)]
    for turn in range(10):
        await asyncio.gather(*(engine.add(f"I like {turn}.", user_id=f"u{n}") for n in range(4)))
        await engine.drain()
    over.set()
    await asyncio.gather(*beside)
    await engine.ledger.balance.fold()
    assert await entries(engine) == 0
    assert await books(engine) == replace(EMPTY, adds=40, accepted=40, succeeded=40, memories=40)


async def test_counts_that_came_to_zero_leave_no_row(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    memory_id = (await engine.event(event_id)).receipt[0].memory_id
    assert memory_id is not None
    await memories.retire(
        engine.project.id, [memory_id], editing=engine.ledger.editing, index=engine.services.index
    )
    await engine.ledger.balance.fold()
    async with engine.ledger.engine.connect() as connection:
        kinds = set(await connection.scalars(text("SELECT kind FROM books")))
    assert kinds == {"NUMBER", "ADD", "SUCCEEDED"}


async def entries(engine: Engine) -> int:
    async with engine.ledger.engine.connect() as connection:
        return int(await connection.scalar(text("SELECT count(*) FROM book_entries")) or 0)


async def test_an_event_that_vanished_shows_in_the_books(engine: Engine) -> None:
    await engine.add("I like jazz.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("DELETE FROM events"))
    assert not (await books(engine)).balanced


async def test_each_project_reads_its_own_books_and_metrics_all_of_them(service: Service) -> None:
    await service.add("I like jazz.")
    other = await Engine.create(service.engine.ledger)
    await other.add("I like tea.")
    for _ in range(2):
        await service.client.post(SEARCH, json={"query": "jazz", "filters": {"user_id": "maya"}})
    answer = await service.client.get("/v1/stats/")
    assert answer.json() == {
        "total_memories": 1,
        "total_add_events": 1,
        "total_retrieval_events": 2,
        "total_api_retrieval_events": 2,
        "total_retrieval_events_limit": 0,
        "total_users_with_memories": 1,
        "total_agents_with_memories": 0,
        "total_runs_with_memories": 0,
        "memories_per_user": 1,
        "memories_per_agent": 0,
        "memories_per_run": 0,
        "accepted": 1,
        "succeeded": 1,
        "failed": 0,
        "cancelled": 0,
        "pending": 0,
        "running": 0,
        "oldest_in_flight_s": 0.0,
        "identity": True,
        "usage": NOTHING_PAID,
    }
    params = {"user_id": "maya", "start_date": "2026-01-31", "end_date": "2026-02-01"}
    narrowed = await service.client.get("/v1/stats/", params=params)
    assert narrowed.json()["usage"] == NOTHING_PAID
    wrong = await service.client.get("/v1/stats/", params={"start_date": "yesterday"})
    assert wrong.status_code == 400
    metrics = (await service.client.get("/metrics")).text
    assert 'memlane_ledger_events{status="accepted"} 2.0' in metrics
    assert "memlane_ledger_balanced 1.0" in metrics
