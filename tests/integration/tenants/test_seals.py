"""Tamper evidence: a row that was changed in the database is named, a rightful change is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text

from pipeline.seals import store as seals
from tests.support.api_service import ADD, MAYA, Service, serving
from tests.support.engine import Engine

KEY = b"a key that is not in the database"


@pytest.fixture
async def service(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(engine.ledger.seals, "_key", KEY)
    async with serving(engine.ledger) as service:
        path = f"/api/v1/orgs/organizations/{service.engine.project.organization_id}/projects/"
        answer = await service.client.patch(
            f"{path}{service.engine.project.id}/", json={"tamper_evidence": True}
        )
        assert answer.status_code == 200, answer.text
        yield service


async def seal(service: Service) -> int:
    return await service.engine.ledger.seals.seal()


async def verify(service: Service) -> dict[str, Any]:
    answer = await service.client.get("/v1/verify/")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def execute(service: Service, statement: str, **values: object) -> None:
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(text(statement), values)


async def later(service: Service) -> None:
    """Let all events so far have ended an hour before the last pass."""
    await execute(service, "UPDATE events SET completed_at = completed_at - interval '1 hour'")


async def live(service: Service) -> str:
    """Store some memories, one of them changed by a later event; return that event."""
    await service.add("I live in Bern.", "I like tea.")
    event_id = await service.add("I moved to Porto.")
    assert await seal(service) > 0
    return event_id


async def test_what_is_sealed_verifies_and_a_second_pass_seals_nothing(service: Service) -> None:
    await live(service)
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"], answer["faults"]) == (True, 0, [])
    assert answer["sealed"] >= 8  # events, receipt lines and history
    assert await seal(service) == 0


@pytest.mark.parametrize(
    ("kind", "problem", "statement"),
    [
        ("event", "edited", "UPDATE messages SET content = 'x' WHERE seq = 1 AND ordinal = 0"),
        ("event", "edited", "UPDATE events SET options = '{}' WHERE seq = 1"),
        ("receipt", "edited", "UPDATE receipts SET text = 'x' WHERE ordinal = 1"),
        ("history", "edited", "UPDATE memory_history SET new_text = 'x' WHERE version = 2"),
        ("receipt", "removed", "DELETE FROM receipts WHERE ordinal = 1"),
        ("history", "removed", "DELETE FROM memory_history WHERE version = 2"),
    ],
)
async def test_one_changed_row_is_named(
    service: Service, kind: str, problem: str, statement: str
) -> None:
    await live(service)
    await execute(service, statement)
    [fault] = (await verify(service))["faults"]
    assert (fault["kind"], fault["problem"]) == (kind, problem)
    await seal(service)  # no later pass covers it up
    assert (await verify(service))["ok"] is False


async def test_an_inserted_row_is_named(service: Service) -> None:
    event_id = await live(service)
    await later(service)
    await execute(
        service,
        "INSERT INTO receipts (event_id, ordinal, outcome, text, reason, message_ordinal)"
        " VALUES (:event_id, 9, 'ADD', 'x', 'x', 0)",
        event_id=event_id,
    )
    await seal(service)
    [fault] = (await verify(service))["faults"]
    assert (fault["problem"], fault["id"], fault["number"]) == ("inserted", event_id, 9)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE seals SET digest = sha256('x') WHERE number = 2",
        "DELETE FROM seals WHERE number = 2",
        "DELETE FROM seals WHERE number = (SELECT max(number) FROM seals)",
        "DELETE FROM seal_heads",
        "UPDATE seal_heads SET signature = sha256('x')",
    ],
)
async def test_a_changed_chain_is_named(service: Service, statement: str) -> None:
    await live(service)
    await execute(service, statement)
    assert (await verify(service))["ok"] is False


async def test_another_key_does_not_verify(service: Service) -> None:
    await live(service)
    other = seals.Seals(service.engine.ledger.engine, b"another key")
    check = await other.check(service.engine.project.id)
    assert {fault.problem for fault in check.faults} == {"head"}


# ── what happens by right ────────────────────────────────────────────────────────────────────────


async def test_an_undo_verifies(service: Service) -> None:
    event_id = await live(service)
    undone = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert undone.status_code == 200
    await seal(service)
    assert (await verify(service))["ok"] is True


async def test_a_replay_of_an_event_with_other_messages_verifies(service: Service) -> None:
    await live(service)
    waiting = (await service.client.post(ADD, json={"messages": "I own a boat."} | MAYA)).json()
    await service.client.post(f"/v1/event/{waiting['event_id']}/cancel/")
    await service.engine.drain()
    await seal(service)
    path = f"/v1/event/{waiting['event_id']}/replay/"
    assert (await service.client.post(path, json={"messages": "I own a bike."})).is_success
    assert (await verify(service))["ok"] is True
    await service.engine.drain()
    await seal(service)
    assert (await verify(service)) == (await verify(service)) | {"ok": True, "waiting": 0}


async def test_a_replay_that_is_switched_on_verifies(service: Service) -> None:
    await live(service)
    await later(service)
    begun = (await service.client.post("/v1/replays/", json=MAYA)).json()
    await service.engine.drain()
    switched = await service.client.post(f"/v1/replays/{begun['id']}/switch/", json={"force": True})
    assert switched.status_code == 200, switched.text
    assert (await verify(service))["ok"] is True
    await seal(service)
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"]) == (True, 0)


async def test_an_erasure_leaves_digests_without_content_and_verifies(service: Service) -> None:
    await live(service)
    sealed = (await verify(service))["sealed"]
    await service.client.delete("/v2/entities/user/maya/")
    assert (await verify(service))["ok"] is True  # before the erasure has a seal of its own
    await seal(service)
    answer = await verify(service)
    assert (answer["ok"], answer["sealed"] > sealed) == (True, True)
    async with service.engine.ledger.engine.connect() as connection:
        query = text("SELECT count(salt) FROM seals WHERE erased_by IS NOT NULL")
        salts = await connection.scalar(query)
    assert salts == 0
    await service.add("I live in Bern.")
    await seal(service)
    assert (await verify(service))["ok"] is True


async def test_a_row_that_was_marked_as_erased_without_an_erasure_is_named(
    service: Service,
) -> None:
    await live(service)
    await execute(service, "DELETE FROM memory_history WHERE version = 2")
    await execute(
        service,
        "UPDATE seals SET erased_by = gen_random_uuid() WHERE kind = 'history' AND row_no = 2",
    )
    [fault] = (await verify(service))["faults"]
    assert (fault["problem"], fault["kind"]) == ("removed", "history")


async def test_a_sweeper_that_dies_midway_leaves_a_chain_that_goes_on(service: Service) -> None:
    for user in ("maya", "jon"):
        await service.add("I live in Bern.", user_id=user)
    signed = seals.signature
    calls: list[object] = []

    def dying(*values: Any) -> bytes:
        calls.append(values)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return signed(*values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seals, "signature", dying)
        with pytest.raises(RuntimeError):
            await seal(service)
    assert (await verify(service))["ok"] is True
    assert await seal(service) > 0
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"]) == (True, 0)


async def test_tamper_evidence_needs_a_key(engine: Engine) -> None:
    async with serving(engine.ledger) as service:
        refused = await service.client.get("/v1/verify/")
        assert (refused.status_code, "MEMLANE_SEAL_KEY" in refused.text) == (400, True)
