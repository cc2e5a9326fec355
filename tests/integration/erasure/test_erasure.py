"""Erasure: no text and no name of a user is left in any store; anonymous figures stay."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, StoreUnavailable
from pipeline.domain.events import AddOptions, StageName, Status
from pipeline.domain.filters import EventFilter
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.erasure import locking
from pipeline.erasure import service as erasure
from pipeline.erasure.locking import Locked
from pipeline.erasure.store import OwnerKey, erasures
from pipeline.events.dead_letters import Edit
from pipeline.ingest.add import add_messages
from pipeline.lanes.store import Lanes
from pipeline.ledger.tables import events, idempotency_keys, lanes, metadata, projects
from pipeline.ports import VectorRecord
from pipeline.replays.store import ReplayOptions
from pipeline.stores import Ledger
from pipeline.vector_index.index import SoughtIds, VectorIndex
from tests.integration.events.test_cancel import is_blocked
from tests.support.api_service import Service, error_of, serving
from tests.support.engine import LIMITS, Engine, with_stores
from tests.support.raw_look import raw_look
from tests.support.stack import wait_until
from tests.support.vectors_memory import InMemoryVectors

MAYA = OwnerKey("user", "maya-4711")
WORDS = ("maya-4711", "Zanzibar", "zanzibar", "Quetzal", "quetzal", "key-of-maya")

# Effect of an erasure on each table. A new table must be added to one of these sets.
ERASED = {
    "memories", "memory_accesses", "memory_history", "past_states", "messages", "receipts",
    "idempotency_keys", "relations", "entities", "graph_receipts", "shadows", "owners", "feedback",
    "suggestions", "webhook_deliveries", "rebuilt", "curator_runs", "curator_steps", "summaries",
    "summary_states", "kept_answers", "conflicts", "conflict_members",
    "turn_vectors", "cleared_lanes", "usage_daily", "user_tokens",
    "memory_reads", "saved_views", "private_runs", "answer_sources", "profiles", "profile_fields",
    "own_collections",
}  # fmt: skip
ONLY_NUMBERS_ARE_LEFT = {"lanes", "events", "stage_runs", "books", "book_entries", "event_costs"}
WITHOUT_AN_OWNER = {
    "organizations", "projects", "members", "api_keys", "cooldowns", "erasures", "failed_runs",
    "webhooks", "vector_collections", "vector_indexes", "compactions", "term_cuts", "seals",
    "seal_heads", "seal_buckets", "seal_projects", "seal_checkpoints", "seal_queue",
    "graph_mirrors", "graph_outbox", "console_sessions", "audit_entries", "queue_samples",
    "profile_jobs",
}  # fmt: skip


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def furnish(engine: Engine) -> UUID:
    """Create every kind of row for one user, in two scopes; return an event that succeeded."""
    options = AddOptions(metadata={"pet": "Quetzal"})
    first = await engine.add("I live in Zanzibar.", user_id=MAYA.id, options=options)
    await engine.drain()
    await engine.add("I moved to Zanzibar City.", "I own a Quetzal.", user_id=MAYA.id)
    await engine.drain()
    await engine.services.index.catch_up()
    await engine.turns.catch_up()
    return first


async def erase(engine: Engine, owner: OwnerKey = MAYA) -> UUID:
    event_id = await erasure.erase(engine.project.id, owner, erasures=engine.ledger.erasures)
    await finish(engine)
    return event_id


async def finish(engine: Engine) -> None:
    await erasure.finish(erasures=engine.ledger.erasures, index=engine.services.index)


async def vectors(engine: Engine) -> set[UUID]:
    store = engine.vectors
    names = await store.list_cols()
    return {r.id for name in names for r in await store.list(name, where={}, limit=1000)}


async def make_due(engine: Engine) -> None:
    """Make the erasures due, as if the lease of their process had expired."""
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(erasures).values(due_at=func.now()))


class NoStore(InMemoryVectors):
    async def list_cols(self) -> list[str]:
        raise StoreUnavailable("It does not answer.")


class Slow(InMemoryVectors):
    """Store whose writes wait until `go_on` is set."""

    def __init__(self, store: InMemoryVectors) -> None:
        vars(self).update(vars(store))
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        self.reached.set()
        await self.go_on.wait()
        await super().insert(name, records)


class Frozen:
    """Lanes for a worker that freezes between its claim and its commit."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lanes, name)

    async def claim(self, *args: Any) -> Any:
        claimed = await self._lanes.claim(*args)
        self.reached.set()
        await self.go_on.wait()
        return claimed


async def counts(engine: Engine, event_id: UUID) -> dict[str, int]:
    receipt = await engine.ledger.erasures.receipt(engine.project.id, event_id)
    assert receipt.status is Status.SUCCEEDED
    return dict(receipt.counts)


def test_every_table_has_a_place_in_the_erasure() -> None:
    known = ERASED | ONLY_NUMBERS_ARE_LEFT | WITHOUT_AN_OWNER
    assert set(metadata.tables) == known, "Decide what an erasure does with it, and say so here."


async def test_after_an_erasure_no_word_and_no_id_is_found_in_any_column(engine: Engine) -> None:
    await furnish(engine)
    before = await raw_look(engine.ledger, WORDS)
    assert {table for table, _ in before} >= {
        "memories", "memory_history", "messages", "receipts", "stage_runs", "lanes", "entities",
        "events",
    }  # fmt: skip
    counted = await counts(engine, await erase(engine))
    assert await raw_look(engine.ledger, WORDS) == {}
    assert await vectors(engine) == set()
    assert counted["memories"] == 2
    assert counted["messages"] == counted["turn_vectors"] == 3
    assert counted["vectors"] == 5
    assert all(
        counted[store] > 0 for store in ("history", "receipts", "stage_outputs", "relations")
    )


async def test_other_users_and_other_tenants_keep_everything(engine: Engine) -> None:
    await furnish(engine)
    other, _ = await engine.ledger.projects.create("other")
    theirs = Engine(engine.ledger, other, engine.services, engine.vectors)
    for who, user_id in ((engine, "jon"), (theirs, MAYA.id)):
        await who.add("I live in Zanzibar.", user_id=user_id)
        await who.drain()
    await erase(engine)
    assert await engine.texts("jon") == ["User lives in Zanzibar"]
    assert await theirs.texts(MAYA.id) == ["User lives in Zanzibar"]


async def test_replays_of_the_scope_go_with_it(engine: Engine) -> None:
    await furnish(engine)
    _, hint = await engine.ledger.shadows.create(engine.scope(MAYA.id), ReplayOptions(), LIMITS)
    assert hint is not None
    await engine.run(hint)  # the lane of the replay is running
    await engine.services.index.catch_up()
    await erase(engine)
    await engine.drain()
    assert await raw_look(engine.ledger, WORDS) == {}
    assert await vectors(engine) == set()
    assert (await engine.ledger.balance.totals()).balanced


BOTH_USERS = {"OR": [{"user_id": MAYA.id}, {"user_id": "jon"}]}
SHAPE = {"properties": {"home": {"type": "string"}}}


class Stopped(Frozen):
    """Lanes for a worker that is stopped after it saved an answer, before the batch is settled."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lanes, name)

    async def claim(self, *args: Any) -> Any:
        return await self._lanes.claim(*args)

    async def settle(self, *args: Any, **values: Any) -> Any:
        self.reached.set()
        await self.go_on.wait()


async def test_a_saved_answer_that_was_not_settled_goes_with_it(service: Service) -> None:
    """The question names no user, so it stays, and is answered again without the erased user."""
    engine = service.engine
    await service.add("I live in Zanzibar.", user_id=MAYA.id, agent_id="bot")
    await service.add("I live in Bern.", user_id="jon", agent_id="bot")
    shape = {"properties": {"summary": {"type": "string", "description": "all"}}}
    body = {"filters": {"agent_id": "bot"}, "schema": shape}
    export_id = (await service.client.post("/v1/exports/", json=body)).json()["id"]
    stopped = Stopped(engine.ledger.lanes)
    ledger = with_stores(engine.ledger, lanes=stopped)
    worker = replace(engine, services=replace(engine.services, ledger=ledger))
    stage = asyncio.create_task(worker.run(engine.hints.waiting.popleft()))
    await stopped.reached.wait()
    stage.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stage
    assert "Zanzibar" in str(await engine.ledger.answers.of(engine.project.id, UUID(export_id)))
    await erase(engine)
    await engine.pass_time(60)
    await engine.sweep()
    await engine.drain()
    assert await raw_look(engine.ledger, WORDS) == {}
    assert (await service.event(export_id))["status"] == "SUCCEEDED"
    assert "Bern" in str(await engine.ledger.answers.of(engine.project.id, UUID(export_id)))


@pytest.mark.parametrize("when", ["answered", "being answered", "waiting"])
async def test_what_was_asked_over_more_than_one_scope_goes_with_it(
    service: Service, when: str
) -> None:
    engine = service.engine
    await service.add("I live in Zanzibar.", user_id=MAYA.id)
    await service.add("I live in Bern.", user_id="jon")
    body = {"filters": BOTH_USERS, "schema": SHAPE}
    export = await service.client.post("/v1/exports/", json=body)
    frozen = Frozen(engine.ledger.lanes)
    if when == "answered":
        await engine.drain()
    elif when == "being answered":
        services = replace(engine.services, ledger=with_stores(engine.ledger, lanes=frozen))
        hint = engine.hints.waiting.popleft()
        worker = asyncio.create_task(replace(engine, services=services).run(hint))
        await frozen.reached.wait()
    await erase(engine)
    if when == "being answered":
        frozen.go_on.set()
        assert await worker is None
    await engine.pass_time(60)
    await engine.sweep()
    await engine.drain()
    assert await raw_look(engine.ledger, WORDS) == {}
    event = await service.event(export.json()["id"])
    assert event["status"] == ("SUCCEEDED" if when == "answered" else "FAILED")
    assert (await engine.ledger.balance.totals(engine.project.id)).balanced


async def test_the_event_that_deleted_all_owners_is_erased_as_well(service: Service) -> None:
    await service.add("I live in Zanzibar.", user_id=MAYA.id)
    await service.add("I live in Bern.", user_id="jon")
    filters = {"filters": json.dumps(BOTH_USERS)}
    assert (await service.client.delete("/v1/memories/", params=filters)).status_code == 200
    assert "Zanzibar" in str(await raw_look(service.engine.ledger, ("Zanzibar",)))
    await erase(service.engine)
    assert await raw_look(service.engine.ledger, WORDS) == {}


async def test_the_books_balance_before_and_after(engine: Engine) -> None:
    failed = await furnish(engine)
    waiting = await engine.add("I like tea.", user_id=MAYA.id)
    await engine.ledger.cancellation.cancel(engine.project.id, waiting)
    await engine.ledger.dead_letters.replay(engine.project.id, waiting, Edit())
    await engine.add("I like rye.", user_id="jon")
    before = await engine.ledger.balance.totals(engine.project.id)
    await erase(engine)
    await engine.drain()
    after = await engine.ledger.balance.totals(engine.project.id)
    assert before.balanced
    assert after.balanced
    assert after.accepted == before.accepted + 1  # the erasure is an event too
    view = await engine.event(failed)
    assert (view.status, view.messages, view.receipt, view.options) == ("SUCCEEDED", [], [], {})


@pytest.mark.parametrize("stage", [StageName.EXTRACT, StageName.RETRIEVE, StageName.APPLY])
async def test_a_worker_in_the_middle_of_a_stage_brings_nothing_back(
    engine: Engine, stage: StageName
) -> None:
    await engine.add("I live in Zanzibar.", user_id=MAYA.id)
    hint = await engine.run_until(stage)
    frozen = Frozen(engine.ledger.lanes)
    services = replace(engine.services, ledger=with_stores(engine.ledger, lanes=frozen))
    zombie = asyncio.create_task(replace(engine, services=services).run(hint))
    await frozen.reached.wait()
    event_id = await erase(engine)
    frozen.go_on.set()
    assert await zombie is None
    await engine.pass_time(3600)
    await engine.sweep()
    await engine.drain()
    assert await raw_look(engine.ledger, WORDS) == {}
    assert (await counts(engine, event_id))["messages"] == 1


async def test_an_add_after_an_erasure_starts_an_empty_history(engine: Engine) -> None:
    await furnish(engine)
    await erase(engine)
    again = await engine.add("I like rye bread.", user_id=MAYA.id)
    await engine.drain()
    view = await engine.event(again)
    assert (view.status, view.scope) == ("SUCCEEDED", Scope(engine.project.id, user_id=MAYA.id))
    assert await engine.texts(MAYA.id) == ["User likes rye bread"]
    hers = EventFilter({"user_id": MAYA.id})
    mine = await engine.ledger.events.page(engine.project.id, hers, limit=10, offset=0)
    assert ([e.id for e in mine.rows], mine.count) == (
        [again],
        1,
    )  # the new events are not linked to the earlier counts


async def test_an_erasure_waits_for_an_index_that_is_down_and_ends_once_it_is_back(
    engine: Engine,
) -> None:
    await furnish(engine)
    event_id = await erasure.erase(engine.project.id, MAYA, erasures=engine.ledger.erasures)
    down = VectorIndex(NoStore(), engine.ledger.memory_vectors, engine.services.embedder, buckets=4)
    with pytest.raises(StoreUnavailable):
        await erasure.finish(erasures=engine.ledger.erasures, index=down)
    assert (await engine.event(event_id)).status == "RUNNING"
    await make_due(engine)
    await finish(engine)
    assert (await counts(engine, event_id))["vectors"] == 5
    assert await vectors(engine) == set()


class OneUnreadable(InMemoryVectors):
    """Store that answers, but not for this collection."""

    def __init__(self, store: InMemoryVectors, name: str) -> None:
        vars(self).update(vars(store))
        self._unreadable = name

    async def get(self, name: str, ids: Sequence[UUID]) -> list[VectorRecord]:
        if name == self._unreadable:
            raise StoreUnavailable("Chroma answered 500.")
        return await super().get(name, ids)


async def test_an_erasure_whose_vectors_cannot_be_deleted_stops_no_other(engine: Engine) -> None:
    index = engine.services.index
    owners = [OwnerKey("user", name) for name in ("maya", "jon", "lea", "ana")]
    for owner in owners:
        await engine.add("I like jazz.", user_id=owner.id)
    await engine.drain()
    assert await index.catch_up() == len(owners)
    events = [
        await erasure.erase(engine.project.id, owner, erasures=engine.ledger.erasures)
        for owner in owners
    ]
    unreadable = index.collection(engine.scope("maya"))
    broken = VectorIndex(
        OneUnreadable(engine.vectors, unreadable),
        engine.ledger.memory_vectors,
        engine.services.embedder,
        buckets=4,
    )
    with pytest.raises(StoreUnavailable):
        await erasure.finish(erasures=engine.ledger.erasures, index=broken)
    hit = [index.collection(engine.scope(owner.id)) == unreadable for owner in owners]
    assert not all(hit)
    statuses = [(await engine.event(event_id)).status for event_id in events]
    assert statuses == ["RUNNING" if same else "SUCCEEDED" for same in hit]


async def test_a_process_that_dies_half_way_through_the_vectors_changes_no_count(
    engine: Engine,
) -> None:
    await furnish(engine)
    ledger, index = engine.ledger, engine.services.index
    event_id = await erasure.erase(engine.project.id, MAYA, erasures=ledger.erasures)
    [pending] = await ledger.erasures.claim(of_sessions=False, limit=5)
    by_collection = await index.holding(SoughtIds(pending.memory_ids))
    await ledger.erasures.record_vectors({event_id: 2})
    assert {name.partition("-")[0]: len(ids) for name, ids in by_collection.items()} == {
        "memories": 2, "turns": 3,
    }  # fmt: skip
    # The process dies here.
    await index.drop({name: ids[:1] for name, ids in by_collection.items()})
    await make_due(engine)
    await finish(engine)
    assert (await counts(engine, event_id))["vectors"] == 2
    assert await vectors(engine) == set()


@pytest.mark.parametrize("kind", ["memory_vectors", "turn_vectors"])
async def test_a_vector_written_late_does_not_outlive_what_it_is_of(
    engine: Engine, kind: str
) -> None:
    await engine.add("I live in Zanzibar.", user_id=MAYA.id)
    await engine.drain()
    slow = Slow(engine.vectors)
    index = VectorIndex(slow, getattr(engine.ledger, kind), engine.services.embedder, buckets=4)
    late = asyncio.create_task(index.catch_up())
    await slow.reached.wait()
    await erase(engine)
    slow.go_on.set()
    await late
    assert await vectors(engine) == set()


async def test_an_erasure_waits_for_no_scope_that_holds_nothing_of_it(engine: Engine) -> None:
    await engine.add("I like tea.", user_id="jon")
    jons = select(lanes).where(lanes.c.id == engine.scope("jon").lane_id)
    async with engine.ledger.engine.begin() as other:
        await other.execute(jons.with_for_update())
        await erase(engine, OwnerKey("agent", "unknown"))
        # The session was not ended for being idle, so it held the lock all the time.
        await other.execute(select(1))


async def test_an_erasure_locks_idempotency_keys_before_lanes_as_adds_do(engine: Engine) -> None:
    await engine.add("I like tea.")
    await engine.drain()
    maya = engine.scope().lane_id
    key = {"project_id": engine.project.id, "key": "k", "digest": b"", "event_id": uuid4()}
    async with engine.ledger.engine.begin() as connection:
        key["event_id"] = await connection.scalar(select(events.c.id))
        await connection.execute(insert(idempotency_keys).values(key))
    async with engine.ledger.engine.begin() as other:
        await other.execute(select(idempotency_keys).with_for_update())
        erasing = asyncio.create_task(erase(engine, OwnerKey("user", "maya")))
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the lock")
        lane = select(lanes.c.id).where(lanes.c.id == maya)
        assert await other.scalar(lane.with_for_update(nowait=True)) == maya
    await erasing
    async with engine.ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(idempotency_keys)) == 0


async def test_an_erasure_locks_again_where_an_add_brings_a_key_while_it_waits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure releases its locks, starts again, and locks the new key's row, too."""
    await furnish(engine)
    turns = [Message(Role.USER, "I like tea.")]
    add = partial(
        add_messages, engine.scope(MAYA.id), turns, AddOptions(), said_at=None,
        ledger=engine.ledger, dispatcher=engine.hints,
    )  # fmt: skip
    await add(key="before")
    lock_owned, tries = locking.lock_owned, list[Locked | None]()

    async def noted(connection: AsyncConnection, *given: Any) -> Locked | None:
        tries.append(await lock_owned(connection, *given))
        return tries[-1]

    monkeypatch.setattr("pipeline.erasure.store.lock_owned", noted)
    async with engine.ledger.engine.begin() as other:
        await other.execute(select(idempotency_keys).with_for_update())
        erasing = asyncio.create_task(erase(engine))
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the lock")
        await add(key="between")
    await erasing
    assert [locked and locked.owned.keys for locked in tries] == [None, ["before", "between"]]
    assert await raw_look(engine.ledger, ("before", "between")) == {}


async def test_an_organization_that_is_deleted_waits_for_what_its_projects_accept(
    engine: Engine,
) -> None:
    ledger = engine.ledger
    gone, _ = await ledger.projects.create("gone")
    late = replace(engine, project=gone)
    lane = {"id": late.scope().lane_id, "project_id": gone.id, "user_id": "maya", "state": "IDLE"}
    async with ledger.engine.begin() as accepting:
        mine = select(projects.c.id).where(projects.c.id == gone.id)
        await accepting.execute(mine.with_for_update(read=True, key_share=True))
        await accepting.execute(insert(lanes).values(lane))
        removing = asyncio.create_task(ledger.project_deletion.remove(gone.organization_id))
        await wait_until(lambda: is_blocked(engine), within_s=60, what="the lock")
    await removing
    async with ledger.engine.connect() as connection:
        left = select(func.count()).where(lanes.c.project_id == gone.id)
        assert await connection.scalar(left) == 0


async def test_two_erasures_at_once_take_everything_once(engine: Engine) -> None:
    await furnish(engine)
    ids = await asyncio.gather(*(erase(engine) for _ in range(3)))
    counted = [await counts(engine, event_id) for event_id in ids]
    assert sorted(t["memories"] for t in counted) == [0, 0, 2]
    assert (await engine.ledger.balance.totals(engine.project.id)).balanced


async def test_an_agent_is_erased_with_all_it_stored_about_users(engine: Engine) -> None:
    scope = Scope(engine.project.id, user_id="jon", agent_id="butler")
    await engine.send(scope, [Message(Role.USER, "I live in Zanzibar.")])
    await engine.add("I like rye.", user_id="jon")
    await engine.drain()
    await erase(engine, OwnerKey("agent", "butler"))
    assert await raw_look(engine.ledger, ("butler", "Zanzibar")) == {}
    assert await engine.texts("jon") == ["User likes rye"]


async def test_an_erasure_can_be_neither_cancelled_nor_undone_nor_can_its_events_be_replayed(
    engine: Engine,
) -> None:
    ledger, project_id = engine.ledger, engine.project.id
    cancelled = await engine.add("I live in Zanzibar.", user_id=MAYA.id)
    await ledger.cancellation.cancel(project_id, cancelled)
    event_id = await erasure.erase(project_id, MAYA, erasures=engine.ledger.erasures)
    with pytest.raises(Conflict):
        await ledger.cancellation.cancel(project_id, event_id)
    with pytest.raises(Conflict):
        await ledger.dead_letters.replay(project_id, cancelled, Edit())
    await finish(engine)
    assert (await engine.event(event_id)).status == "SUCCEEDED"


async def test_over_http_it_answers_with_an_event_and_then_with_the_receipt(
    service: Service,
) -> None:
    client, engine = service.client, service.engine
    await service.add("I live in Zanzibar.", user_id=MAYA.id)
    answer = await client.post("/v1/erasures/", json={"user_id": MAYA.id})
    assert answer.status_code == 200, answer.text
    event_id = answer.json()["event_id"]
    assert await service.listed(user_id=MAYA.id) == []
    assert (await service.event(event_id))["status"] == "RUNNING"
    await finish(engine)
    event = await service.event(event_id)
    assert (event["status"], event["event_type"]) == ("SUCCEEDED", "DELETE_USER")
    receipt = (await client.get(f"/v1/erasures/{event_id}/")).json()
    assert (receipt["status"], receipt["erased"]["memories"]) == ("SUCCEEDED", 1)
    assert MAYA.id not in str(receipt)


@pytest.mark.parametrize("body", [{}, {"user_id": "a", "agent_id": "b"}, {"user_id": ""}])
async def test_an_erasure_that_names_not_exactly_one_is_refused(
    service: Service, body: dict[str, str]
) -> None:
    await service.add("I live in Zanzibar.", user_id="a")
    answer: httpx.Response = await service.client.post("/v1/erasures/", json=body)
    assert answer.status_code == 400
    assert error_of(answer)
    assert len(await service.listed(user_id="a")) == 1


async def test_a_receipt_is_shown_to_its_own_project_only(service: Service) -> None:
    _, key = await service.engine.ledger.projects.create("other")
    answer = await service.client.post("/v1/erasures/", json={"user_id": MAYA.id})
    url = f"/v1/erasures/{answer.json()['event_id']}/"
    theirs = await service.client.get(url, headers={"Authorization": f"Token {key}"})
    assert theirs.status_code == 404


@pytest.mark.parametrize("user_id", [".", ".."])
async def test_an_id_that_no_path_can_have_is_erased_by_a_body(
    service: Service, user_id: str
) -> None:
    await service.add("I live in Zanzibar.", user_id=user_id)
    normalized = await service.client.delete(f"/v2/entities/user/{user_id}/")
    assert normalized.status_code == 404
    assert len(await service.listed(user_id=user_id)) == 1
    answer = await service.client.post("/v1/erasures/", json={"user_id": user_id})
    assert answer.status_code == 200, answer.text
    assert await service.listed(user_id=user_id) == []
