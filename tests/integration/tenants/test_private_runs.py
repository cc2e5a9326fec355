"""Private runs: temporary sessions that are erased whole, and incognito ones that store nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, text, update

from pipeline.domain.scope import Scope
from pipeline.erasure import service as erasure
from pipeline.ledger.tables import private_runs
from pipeline.stores import Ledger
from tests.integration.ingest.test_dry_run import rows
from tests.support.api_service import ADD, LIST, MAYA, SEARCH, Service, error_of, serving
from tests.support.raw_look import raw_look

TRIP = MAYA | {"run_id": "trip-4711"}
WORDS = ("trip-4711", "Zanzibar", "zanzibar")
RUN = "/v1/runs/trip-4711/"


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def declare(service: Service, privacy: str, **body: object) -> dict[str, Any]:
    answer = await service.client.put(RUN, json={"privacy": privacy} | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def texts(service: Service, **filters: object) -> set[str]:
    listed = await service.client.post(LIST, json={"filters": filters or MAYA})
    assert listed.status_code == 200, listed.text
    return {row["memory"] for row in listed.json()["results"]}


async def hits(service: Service, query: str, **filters: object) -> set[str]:
    body = {"query": query, "filters": filters or MAYA, "include": ["facts", "turns"]}
    answer = await service.client.post(SEARCH, json=body)
    assert answer.status_code == 200, answer.text
    return {row["memory"] for row in answer.json()["results"]}


async def graph(service: Service, **ids: str) -> str:
    answer = await service.client.get("/v1/graph/", params={"entity": "user"} | ids)
    return answer.text


async def pass_expiry(service: Service) -> int:
    """Move the end of all temporary runs into the past, and let the sweeper end them."""
    ledger = service.engine.ledger
    async with ledger.engine.begin() as connection:
        over = update(private_runs).where(private_runs.c.expires_at.is_not(None))
        await connection.execute(over.values(expires_at=func.now()))
    ended = await erasure.end_expired(runs=ledger.private_runs, erasures=ledger.erasures)
    await finish(service)
    return ended


async def finish(service: Service) -> None:
    """Let the sweeper finish ended sessions and requested erasures."""
    ledger, index = service.engine.ledger, service.engine.services.index
    for of_sessions in (True, False):
        await erasure.finish(erasures=ledger.erasures, index=index, of_sessions=of_sessions)


# ── temporary ────────────────────────────────────────────────────────────────────────────────────


async def test_a_temporary_run_is_found_in_the_run_only(service: Service) -> None:
    await service.add("I like tea.", **MAYA)
    run = await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    await service.engine.services.index.catch_up()
    named: list[dict[str, Any]] = [
        TRIP,
        {"run_id": "trip-4711"},
        {"run_id": {"in": ["trip-4711", "other"]}},
    ]
    for filters in named:
        assert await texts(service, **filters) == {"User lives in Zanzibar"}
        assert "User lives in Zanzibar" in await hits(service, "Zanzibar", **filters)
    unnamed: list[dict[str, Any]] = [
        MAYA,
        {"AND": [MAYA, {"run_id": "*"}]},
        {"AND": [MAYA, {"NOT": {"run_id": "other"}}]},
        {"OR": [MAYA, {"run_id": "other"}]},
    ]
    for filters in unnamed:
        assert not {row for row in await texts(service, **filters) if "Zanzibar" in row}
        assert not {row for row in await hits(service, "Zanzibar", **filters) if "Zanzibar" in row}
    assert "Zanzibar" in await graph(service, **TRIP)
    assert "Zanzibar" not in await graph(service, **MAYA)
    now = await service.engine.ledger.now()
    past = {"filters": MAYA, "as_of": now.isoformat()}
    listed = (await service.client.post(LIST, json=past)).json()["results"]
    assert {row["memory"] for row in listed} == {"User likes tea"}
    shown = (await service.client.get(RUN)).json()
    assert shown == run
    assert run["privacy"] == "temporary"
    assert datetime.fromisoformat(run["expires_at"]) > now


async def test_an_ordinary_run_is_found_as_before(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I own a boat.", **MAYA, run_id="ordinary")
    assert await texts(service) == {"User owns a boat"}


@pytest.mark.parametrize("end", ["request", "expiry"])
async def test_at_its_end_all_of_a_temporary_run_is_erased_with_a_receipt(
    service: Service, end: str
) -> None:
    await service.add("I like tea.", **MAYA)
    run = await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    await service.client.post(ADD, json={"messages": "I own a Zanzibar flag."} | TRIP)
    await service.engine.services.index.catch_up()
    before = await raw_look(service.engine.ledger, WORDS)
    assert {table for table, _ in before} >= {"memories", "messages", "lanes", "private_runs"}
    if end == "request":
        ended = await service.client.delete("/v2/entities/run/trip-4711/")
        assert ended.json()["event_id"] == run["erasure_event_id"]
        await finish(service)
    else:
        assert await pass_expiry(service) == 1
        assert await pass_expiry(service) == 0
    await service.engine.drain()
    assert await raw_look(service.engine.ledger, WORDS) == {}
    receipt = (await service.client.get(f"/v1/erasures/{run['erasure_event_id']}/")).json()
    assert (receipt["entity_type"], receipt["status"]) == ("run", "SUCCEEDED")
    assert receipt["erased"]["memories"] == 1
    assert receipt["erased"]["messages"] == 2
    assert receipt["erased"]["private_runs"] == 1
    assert await texts(service) == {"User likes tea"}
    assert (await service.client.get(RUN)).status_code == 404
    assert (await service.engine.ledger.books.accounts()).balanced


async def test_two_sweepers_end_a_run_once(service: Service) -> None:
    await declare(service, "temporary")
    ledger = service.engine.ledger
    async with ledger.engine.begin() as connection:
        await connection.execute(update(private_runs).values(expires_at=func.now()))
    ended = await asyncio.gather(
        *(erasure.end_expired(runs=ledger.private_runs, erasures=ledger.erasures) for _ in range(3))
    )
    assert sorted(ended) == [0, 0, 1]


async def test_the_erasure_of_the_user_takes_the_temporary_run_along(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    await service.client.delete("/v2/entities/user/maya/")
    await finish(service)
    assert await raw_look(service.engine.ledger, WORDS) == {}


async def test_a_run_of_two_users_stays_temporary_when_one_is_erased(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    jon = {"user_id": "jon", "run_id": "trip-4711"}
    await service.add("I own a Zanzibar flag.", **jon)
    await service.client.delete("/v2/entities/user/maya/")
    assert await texts(service, user_id="jon") == set()
    assert len(await texts(service, **jon)) == 1


async def test_a_delete_of_the_user_reaches_the_temporary_run(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP, metadata={"trip": "x"})
    await service.client.delete("/v1/memories/", params=MAYA | {"metadata": '{"trip": "x"}'})
    assert await texts(service, **TRIP) == set()


async def test_a_repeated_request_moves_the_end(service: Service) -> None:
    first = await declare(service, "temporary")
    later = (await service.engine.ledger.now() + timedelta(days=3)).isoformat()
    moved = await declare(service, "temporary", expires_at=later)
    assert datetime.fromisoformat(moved["expires_at"]) == datetime.fromisoformat(later)
    assert moved["erasure_event_id"] == first["erasure_event_id"]
    other = await service.client.put(RUN, json={"privacy": "incognito"})
    assert other.status_code == 409


async def test_a_run_with_events_and_wrong_requests_are_refused(service: Service) -> None:
    await service.add("I like tea.", **TRIP)
    for privacy in ("temporary", "incognito"):
        refused = await service.client.put(RUN, json={"privacy": privacy})
        assert (refused.status_code, "begin another run" in error_of(refused)) == (409, True)
    soon = (await service.engine.ledger.now()).isoformat()
    for body in (
        {},
        {"privacy": "secret"},
        {"privacy": "incognito", "expires_at": soon},
        {"privacy": "temporary", "ttl": 5},
    ):
        assert (await service.client.put("/v1/runs/new/", json=body)).status_code == 400
    wild = await service.client.put("/v1/runs/*/", json={"privacy": "temporary"})
    assert wild.status_code == 400
    assert (await service.client.get("/v1/runs/unknown/")).status_code == 404


async def test_a_run_is_private_in_its_own_project_only(service: Service) -> None:
    await declare(service, "temporary")
    engine = service.engine
    other, _ = await engine.ledger.projects.create("other")
    runs = engine.ledger.private_runs
    assert not await runs.is_incognito(Scope(other.id, run_id="trip-4711"))
    await runs.declare(
        other.id, "trip-4711", (await runs.get(engine.project.id, "trip-4711")).privacy
    )
    async with engine.ledger.engine.connect() as connection:
        counted = await connection.scalar(text("SELECT count(*) FROM private_runs"))
    assert counted == 2


# ── incognito ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["add", "run"])
@pytest.mark.parametrize("infer", [True, False])
async def test_an_incognito_add_is_answered_and_nothing_of_it_is_stored(
    service: Service, way: str, infer: bool
) -> None:
    await service.add("I like tea.", **MAYA)
    own = {"user_id": "zanzibar-4711"} if way == "add" else TRIP
    flag = {"incognito": True} if way == "add" else {}
    if way == "run":
        await declare(service, "incognito")
    before = await rows(service.engine.ledger)
    body = {"messages": "I moved to Zanzibar.", "infer": infer, "metadata": {"x": "Zanzibar"}}
    key = {"Idempotency-Key": "Zanzibar"}
    answer = await service.client.post(ADD, json=body | own | flag, headers=key)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["results"]) == ("SUCCEEDED", [])
    assert answer.json()["message"].startswith("Incognito")
    assert list(service.engine.hints.waiting) == []
    after = await rows(service.engine.ledger)
    changed = {table for table in after if after[table] != before[table]}
    assert changed == {"book_entries"}  # the number of events
    leftovers = await raw_look(service.engine.ledger, ("Zanzibar", "zanzibar"))
    assert leftovers == {}
    event = await service.event(answer.json()["event_id"])
    assert (event["event_type"], event["status"]) == ("INCOGNITO", "SUCCEEDED")
    assert event["payload"]["options"] == {"incognito": True}
    assert event["payload"]["messages"] == []
    assert (event["payload"]["user_id"], event["payload"]["run_id"]) == (None, None)
    # The session reads what is known.
    assert await hits(service, "tea") >= {"User likes tea"}
    assert (await service.engine.ledger.books.accounts()).balanced


async def test_older_clients_get_no_results_for_an_incognito_add(service: Service) -> None:
    body = {"messages": "I moved to Zanzibar.", "incognito": True} | MAYA
    assert (await service.client.post("/v1/memories/", json=body)).json() == []
    older = await service.client.post("/v1/memories/", json=body | {"output_format": "v1.1"})
    assert older.json() == {"results": [], "relations": []}
    assert await raw_look(service.engine.ledger, WORDS) == {}


async def test_a_dry_run_of_an_incognito_add_is_refused(service: Service) -> None:
    body = {"messages": "I moved to Zanzibar.", "incognito": True, "dry_run": True} | MAYA
    assert (await service.client.post(ADD, json=body)).status_code == 400


async def test_an_incognito_run_stores_no_dry_run_either(service: Service) -> None:
    await declare(service, "incognito")
    answer = await service.client.post(
        ADD, json={"messages": "I moved to Zanzibar.", "dry_run": True} | TRIP
    )
    assert answer.json()["status"] == "SUCCEEDED"
    assert "Zanzibar" not in str(await rows(service.engine.ledger))
