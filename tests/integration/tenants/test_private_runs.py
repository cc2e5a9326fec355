"""Private runs: temporary sessions that are erased whole, and incognito ones that store nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, text, update

from pipeline.domain.errors import Conflict
from pipeline.domain.events import AddOptions
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.erasure import service as erasure
from pipeline.erasure.store import Erasures
from pipeline.events.retention import Retention
from pipeline.lanes.accept import Add
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.tables import lanes, private_runs
from pipeline.stores import Ledger
from pipeline.tenants.private_runs import Privacy
from tests.integration.events.test_cancel import is_blocked
from tests.integration.ingest.test_dry_run import rows
from tests.support.api_service import ADD, LIST, MAYA, SEARCH, Service, error_of, serving
from tests.support.engine import Engine
from tests.support.raw_look import raw_look
from tests.support.stack import wait_until

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
    ended = await erasure.SessionEnds(ledger.private_runs, ledger.erasures).end_next()
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


async def test_an_ordinary_run_stands_on_the_page_beside_many_newer_temporary_ones(
    service: Service,
) -> None:
    """The page and its numbers leave temporary runs out, whether the books are folded or not."""
    await service.add("I like tea.", user_id="maya", run_id="ordinary")
    for n in range(5):
        await service.client.put(f"/v1/runs/trip-{n}/", json={"privacy": "temporary"})
        await service.add("I like Zanzibar.", user_id="maya", run_id=f"trip-{n}")
    for _ in range(2):
        page = (await service.client.get("/v1/entities/", params={"page_size": 3})).json()
        assert {row["id"] for row in page["results"]} == {"maya", "ordinary"}
        assert (page["count"], page["total_runs"]) == (2, 1)
        [named] = (await service.client.get("/v2/entities/run/trip-3/")).json()
        assert (named["id"], named["total_memories"]) == ("trip-3", 1)
        await service.engine.ledger.balance.fold()
    await pass_expiry(service)
    assert (await service.client.get("/v2/entities/run/trip-3/")).status_code == 404


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
    assert (await service.engine.ledger.balance.totals()).balanced


async def test_two_sweepers_end_a_run_once(service: Service) -> None:
    await declare(service, "temporary")
    ledger = service.engine.ledger
    async with ledger.engine.begin() as connection:
        await connection.execute(update(private_runs).values(expires_at=func.now()))
    ended = await asyncio.gather(
        *(erasure.SessionEnds(ledger.private_runs, ledger.erasures).end_next() for _ in range(3))
    )
    assert sorted(ended) == [0, 0, 1]


@pytest.fixture
async def locked_run(engine: Engine) -> AsyncIterator[list[str]]:
    """Three runs that are over; the lane of the oldest is locked. Returns their ids."""
    ledger, project_id = engine.ledger, engine.project.id
    now = await ledger.now()
    run_ids = ["run0", "run1", "run2"]
    for age, run_id in enumerate(reversed(run_ids)):
        ended_at = now - timedelta(hours=1 + age)
        await ledger.private_runs.declare(
            project_id, run_id, Privacy.TEMPORARY, expires_at=ended_at
        )
        await engine.send(
            Scope(project_id, user_id="maya", run_id=run_id), [Message(Role.USER, "I like tea.")]
        )
    lane = select(lanes.c.id).where(lanes.c.run_id == "run0")
    async with ledger.engine.begin() as connection:
        await connection.execute(lane.with_for_update())
        yield run_ids


async def open_runs(ledger: Ledger) -> list[str]:
    return [end.run_id for end in await ledger.private_runs.expired(limit=5)]


@pytest.mark.parametrize("at_once", [50, 1])
async def test_a_run_that_cannot_be_erased_blocks_no_other(
    engine: Engine, locked_run: list[str], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "AT_ONCE", at_once)
    ledger = engine.ledger
    assert await open_runs(ledger) == locked_run
    ends = erasure.SessionEnds(ledger.private_runs, ledger.erasures)
    ended = await ends.end_next()
    while ends.under_way:
        ended += await ends.end_next()
    assert ended == 2
    assert await open_runs(ledger) == locked_run[:1]


@pytest.mark.parametrize(("overdue", "late"), [(timedelta(0), False), (timedelta(hours=1), True)])
async def test_ends_of_sessions_are_late_if_all_of_a_step_are(
    engine: Engine, overdue: timedelta, late: bool
) -> None:
    runs, project_id = engine.ledger.private_runs, engine.project.id
    now = await engine.ledger.now()
    for number, age in enumerate((timedelta(hours=2), overdue)):
        await runs.declare(project_id, f"run{number}", Privacy.TEMPORARY, expires_at=now - age)
    ends = erasure.SessionEnds(runs, engine.ledger.erasures)
    assert not ends.late
    assert await ends.end_next() == 2
    assert ends.late is late


class OutOfReach(Erasures):
    async def end_run(self, project_id: ProjectId, run_id: str) -> UUID | None:
        raise LedgerUnavailable(ConnectionError())


async def test_a_lost_ledger_stops_the_ends_of_sessions(
    engine: Engine, locked_run: list[str]
) -> None:
    ledger = engine.ledger
    lost = OutOfReach(ledger.engine, ledger.seals.keys)
    with pytest.raises(LedgerUnavailable):
        await erasure.SessionEnds(ledger.private_runs, lost).end_next()
    assert await open_runs(ledger) == locked_run


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
    assert (await service.engine.ledger.balance.totals()).balanced


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


async def test_an_incognito_run_keeps_no_id(service: Service) -> None:
    await declare(service, "incognito")
    assert await raw_look(service.engine.ledger, WORDS) == {}
    assert (await service.client.get(RUN)).json()["run_id"] == "trip-4711"


async def test_an_incognito_event_is_found_by_its_id_in_its_own_project_only(
    service: Service,
) -> None:
    body = {"messages": "I moved to Zanzibar.", "incognito": True} | MAYA
    event_id = (await service.client.post(ADD, json=body)).json()["event_id"]
    for path in (f"/v1/event/{event_id}/?wait=5", f"/v1/events/{event_id}/"):
        event = (await service.client.get(path)).json()
        assert (event["status"], event["event_type"]) == ("SUCCEEDED", "INCOGNITO")
        assert event["completed_at"]
    stream = await service.client.get(f"/v1/event/{event_id}/stream/")
    assert "event: end" in stream.text
    assert (await service.client.get("/v1/events/")).json()["count"] == 0
    _, key = await service.engine.ledger.projects.create("other")
    theirs = {"Authorization": f"Token {key}"}
    assert (await service.client.get(f"/v1/event/{event_id}/", headers=theirs)).status_code == 404
    guessed = str(UUID(event_id).hex[:-1]) + ("0" if event_id[-1] != "0" else "1")
    assert (await service.client.get(f"/v1/event/{UUID(guessed)}/")).status_code == 404


async def test_incognito_adds_wait_for_no_lock_of_the_project(service: Service) -> None:
    engine = service.engine
    own = Scope(engine.project.id)
    await service.add("I like tea.")
    async with engine.ledger.engine.begin() as other:
        lane = {"id": own.lane_id, "project_id": own.project_id, "state": "IDLE"}
        await other.execute(insert(lanes).values(lane))
        body = {"messages": "I moved to Zanzibar.", "incognito": True} | MAYA
        assert (await service.client.post(ADD, json=body)).status_code == 200
    assert (await engine.ledger.balance.totals(engine.project.id)).accepted == 2


# ── after the end ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("privacy", ["temporary", "incognito"])
async def test_a_run_that_has_ended_refuses_adds_until_it_is_declared_again(
    service: Service, privacy: str
) -> None:
    first = await declare(service, privacy)
    await service.client.delete("/v2/entities/run/trip-4711/")
    await finish(service)
    for body in ({}, {"infer": False}, {"dry_run": True}):
        late = await service.client.post(
            ADD, json={"messages": "I live in Zanzibar."} | TRIP | body
        )
        assert (late.status_code, "has ended" in error_of(late)) == (409, True)
    assert await raw_look(service.engine.ledger, WORDS) == {}
    again = await declare(service, "temporary")
    assert again["erasure_event_id"] != first["erasure_event_id"]
    await service.add("I own a Zanzibar flag.", **TRIP)
    assert await texts(service) == set()
    assert len(await texts(service, **TRIP)) == 1


async def test_a_late_add_spoils_none_of_its_group(service: Service) -> None:
    await declare(service, "temporary")
    await service.client.delete("/v2/entities/run/trip-4711/")
    sent = [{"messages": f"I like dish {n}.", "user_id": f"u{n}"} for n in range(5)]
    late = {"messages": "I live in Zanzibar."} | TRIP
    answers = await asyncio.gather(*(service.client.post(ADD, json=b) for b in [*sent, late]))
    assert [answer.status_code for answer in answers] == [200] * 5 + [409]


async def test_the_erasure_of_the_user_ends_the_users_runs(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    await service.client.delete("/v2/entities/user/maya/")
    late = await service.client.post(ADD, json={"messages": "I live in Zanzibar."} | TRIP)
    assert late.status_code == 409


async def test_an_ended_run_is_forgotten_after_the_retention_time(service: Service) -> None:
    await declare(service, "temporary")
    await service.client.delete("/v2/entities/run/trip-4711/")
    engine = service.engine.ledger.engine
    day = timedelta(days=1)
    retention = Retention(engine, keys_for=day, outputs_for=day)
    assert await retention.forget_private_runs() == 0
    async with engine.begin() as connection:
        await connection.execute(update(private_runs).values(ended_at=func.now() - 2 * day))
    assert await retention.forget_private_runs() == 1
    assert (await service.add("I like tea.", **TRIP)) is not None


async def test_an_end_that_is_moved_in_time_erases_nothing(service: Service) -> None:
    await declare(service, "temporary")
    await service.add("I moved to Zanzibar.", **TRIP)
    ledger = service.engine.ledger
    async with ledger.engine.begin() as connection:
        await connection.execute(update(private_runs).values(expires_at=func.now()))
    [end] = await ledger.private_runs.expired(limit=5)
    await declare(service, "temporary", expires_at=(await ledger.now() + timedelta(1)).isoformat())
    assert await ledger.erasures.end_run(end.project_id, end.run_id) is None
    assert await texts(service, **TRIP) == {"User lives in Zanzibar"}
    assert await texts(service) == set()


async def test_a_first_add_and_a_declaration_at_once_are_one_after_the_other(
    service: Service,
) -> None:
    """The add is in its transaction already when the run is declared: one of them is refused."""
    engine = service.engine
    scope = Scope(engine.project.id, **TRIP)
    lane = {"id": scope.lane_id, "project_id": scope.project_id, "state": "IDLE"} | TRIP
    async with engine.ledger.engine.begin() as adding:
        await adding.execute(insert(lanes).values(accepted_seq=1, settled_seq=1, **lane))
        declaring = asyncio.create_task(service.client.put(RUN, json={"privacy": "incognito"}))
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the lock")
    assert (await declaring).status_code == 409


async def test_an_add_that_meets_a_declaration_is_not_stored(service: Service) -> None:
    engine = service.engine
    run = {"project_id": engine.project.id, "privacy": "incognito", "erasure_id": uuid4()}
    digest = func.private_run_digest(engine.project.id, "trip-4711")
    key = func.hashtextextended(func.encode(digest, "hex"), 0)
    scope = Scope(engine.project.id, **TRIP)
    add = Add(uuid4(), scope, [Message(Role.USER, "Zanzibar")], AddOptions(), 1)
    async with engine.ledger.engine.begin() as declaring:
        await declaring.execute(select(func.pg_advisory_xact_lock(key)))
        adding = asyncio.create_task(engine.ledger.group_commit.accept(add))
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the lock")
        await declaring.execute(insert(private_runs).values(digest=digest, **run))
    with pytest.raises(Conflict, match="incognito"):
        await adding
    assert await raw_look(engine.ledger, WORDS) == {}
