"""Tamper evidence: a row that was changed in the database is named, a rightful change is not."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text

from pipeline import telemetry
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.erasure.store import OwnerKey
from pipeline.ingest.imports import accept_import
from pipeline.seals import chain, sealing
from pipeline.seals import store as seals
from pipeline.seals.keys import SealKeys, key_id
from pipeline.seals.sql import statement as seal_statement
from tests.integration.transfer.test_round_trip import records
from tests.support.api_service import ADD, MAYA, Service, serving
from tests.support.engine import Engine

NOAH = "(SELECT id FROM lanes WHERE user_id = 'noah')"
KEY = b"a key that is not in the database"


@pytest.fixture
async def service(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(engine.ledger.seals.keys, "_by_id", {key_id(KEY): KEY})
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
    """Walk all pages of a verification, as the command does."""
    answer = await service.client.get("/v1/verify/")
    assert answer.status_code == 200, answer.text
    whole = dict(answer.json())
    while whole["next"]:
        page = await service.client.get("/v1/verify/", params={"cursor": whole["next"]})
        assert page.status_code == 200, page.text
        for name in ("sealed", "waiting", "faults"):
            whole[name] += page.json()[name]
        whole["ok"] = whole["ok"] and page.json()["ok"]
        whole["next"] = page.json()["next"]
    return whole


async def execute(service: Service, statement: str, **values: object) -> None:
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(text(statement), values)


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


async def test_an_inserted_row_with_an_earlier_date_is_named(service: Service) -> None:
    event_id = await live(service)
    await execute(service, "UPDATE events SET completed_at = completed_at - interval '1 hour'")
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
        "UPDATE seal_heads SET signature = decode('02', 'hex') || sha256('x')",
    ],
)
async def test_a_changed_chain_is_named(service: Service, statement: str) -> None:
    await live(service)
    await execute(service, statement)
    assert (await verify(service))["ok"] is False


async def test_another_key_does_not_verify(service: Service) -> None:
    await live(service)
    other = seals.Seals(service.engine.ledger.engine, SealKeys([b"another key"]))
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
    begun = (await service.client.post("/v1/replays/", json=MAYA)).json()
    await service.engine.drain()
    switched = await service.client.post(f"/v1/replays/{begun['id']}/switch/", json={"force": True})
    assert switched.status_code == 200, switched.text
    assert (await verify(service))["ok"] is True
    await seal(service)
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"]) == (True, 0)


async def import_old_lines(service: Service) -> None:
    """Import a scope of another project, whose events ended 90 days ago."""
    engine = service.engine
    other, _ = await engine.ledger.projects.create("other")
    await engine.send(Scope(other.id, user_id="noah"), [Message(Role.USER, "I work at Acme.")])
    await engine.drain()
    old = "created_at = created_at - interval '90 days'"
    ended = "completed_at = completed_at - interval '90 days'"
    await execute(service, f"UPDATE events SET {old}, {ended} WHERE lane_id IN {NOAH}")
    await execute(service, f"UPDATE memory_history SET {old} WHERE project_id = :id", id=other.id)
    lines = [line async for line in engine.ledger.export.lines(other.id, {})]
    await accept_import(
        records(lines),
        engine.project.id,
        new_ids=True,
        ledger=engine.ledger,
        dispatcher=engine.hints,
    )
    await engine.drain()


async def test_an_import_of_old_lines_verifies(service: Service) -> None:
    await live(service)
    await import_old_lines(service)
    answer = await verify(service)
    assert (answer["faults"], answer["waiting"] > 3) == ([], True)
    await seal(service)
    answer = await verify(service)
    assert (answer["faults"], answer["waiting"]) == ([], 0)


@pytest.mark.parametrize("imported_at", ["now()", "NULL"])
@pytest.mark.parametrize(("table", "kind"), [("events", "event"), ("memory_history", "history")])
async def test_a_seal_covers_the_time_of_an_import(
    service: Service, table: str, kind: str, imported_at: str
) -> None:
    await live(service)
    await import_old_lines(service)
    await seal(service)
    await execute(
        service,
        f"UPDATE {table} SET imported_at = {imported_at} WHERE imported_at IS NOT NULL",
    )
    [fault] = (await verify(service))["faults"]
    assert (fault["kind"], fault["problem"]) == (kind, "edited")


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
    calls: list[object] = []

    def dying(*values: Any) -> bytes:
        calls.append(values)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return chain.next_link(*values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "next_link", dying)
        with pytest.raises(RuntimeError):
            await seal(service)
    assert (await verify(service))["ok"] is True
    assert await seal(service) > 0
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"]) == (True, 0)


async def test_a_sweeper_without_the_key_shows_how_long_rows_wait(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.add("I live in Bern.")
    await execute(service, "UPDATE seal_queue SET queued_at = now() - interval '1 hour'")
    monkeypatch.setattr(service.engine.ledger.seals, "keys", SealKeys())
    assert await seal(service) == 0
    (family,) = telemetry.seals_oldest_seconds.collect()
    assert family.samples[0].value >= 3_600


async def test_tamper_evidence_needs_a_key(engine: Engine) -> None:
    async with serving(engine.ledger) as service:
        off = await service.client.get("/v1/verify/")
        assert (off.status_code, off.json()["enabled"]) == (200, False)
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(text("UPDATE projects SET tamper_evidence = true"))
        refused = await service.client.get("/v1/verify/")
        assert (refused.status_code, "MEMLANE_SEAL_KEY" in refused.text) == (400, True)


# ── forgeries by a person with the database ─────────────────────────────────────────────────────

REWRITE = """WITH chosen_events AS (SELECT id FROM events), chosen_versions AS (
    SELECT memory_id, version AS low, version AS high FROM memory_history
), {content}
SELECT s.*, sha256(s.salt || convert_to(c.content, 'UTF8')) AS again
FROM seals s JOIN content c ON c.row_id = s.row_id AND c.kind = s.kind AND c.row_no = s.row_no
ORDER BY s.number"""


async def rewrite_chain(service: Service) -> None:
    """Recompute digests and links, which need no key, and put the last link into the head."""
    content = seal_statement("sealed_content").text
    query = text(REWRITE.format(content=content))
    link, number = b"", 0
    async with service.engine.ledger.engine.begin() as connection:
        values = {"project_id": service.engine.project.id}
        for row in (await connection.execute(query, values)).all():
            place = f"{row.number}:{row.kind}:{row.row_id}:{row.row_no}:".encode()
            link, number = hashlib.sha256(link + place + row.again).digest(), row.number
            await connection.execute(
                text("UPDATE seals SET digest = :digest, link = :link WHERE number = :number"),
                {"digest": row.again, "link": link, "number": number},
            )
        await connection.execute(
            text("UPDATE seal_heads SET link = :link, reopened = true"), {"link": link}
        )


EDIT = "UPDATE memory_history SET new_text = 'User lives in Oslo' WHERE version = 2"
EDIT_MESSAGE = "UPDATE messages SET content = 'I moved to Oslo.' WHERE seq = 2"
NEW_ERASURE = (
    "UPDATE seals SET erased_by = (SELECT event_id FROM erasures LIMIT 1), salt = NULL"
    " WHERE kind = 'history' AND row_no = 2"
)
BACKDATED = (
    "INSERT INTO memory_history (memory_id, version, project_id, event, new_text, reason,"
    " valid_from, created_at) SELECT memory_id, 50, project_id, 'UPDATE', 'x', 'x',"
    " now() - interval '90 days', now() - interval '90 days' FROM memory_history LIMIT 1"
)
EMPTY = [
    f"DELETE FROM {table}"
    for table in ("memory_history", "receipts", "past_states", "relations", "entities", "memories")
]
ENTRY_OF = (
    "INSERT INTO seal_queue (project_id, kind, lane_id, row_id, row_no, covers, key_id, signature)"
)
NO_SEALS = ["DELETE FROM seals", "DELETE FROM seal_heads"]
FORGERIES: dict[str, list[str | Callable[[Service], Awaitable[None]]]] = {
    "chain rewritten": [EDIT, rewrite_chain],
    "seals deleted": [EDIT, *NO_SEALS, "UPDATE projects SET sealed_until = NULL"],
    "seals and roots deleted": [
        EDIT,
        *NO_SEALS,
        *(f"DELETE FROM seal_{name}" for name in ("buckets", "checkpoints", "projects", "queue")),
    ],
    "project set back to the beginning": [
        EDIT,
        *NO_SEALS,
        "DELETE FROM seal_buckets",
        "UPDATE seal_projects SET state = 'adopting', counter = 0, signature = '', key_id = '',"
        " rotated_to = ''",
    ],
    "replay claimed": [
        EDIT_MESSAGE,
        "UPDATE events SET replays = replays + 1, completed_at = now() WHERE seq = 2",
    ],
    "replay claimed, with an entry in the queue": [
        EDIT_MESSAGE,
        ENTRY_OF
        + " SELECT project_id, 'replay', lane_id, id, 1, '', 'x', 'x' FROM events WHERE seq = 2",
        "UPDATE events SET replays = replays + 1, completed_at = now() WHERE seq = 2",
    ],
    "erasure of another owner claimed": [
        NEW_ERASURE,
        "DELETE FROM memory_history WHERE version = 2",
    ],
    "scope deleted": [
        *NO_SEALS,
        *EMPTY,
        *(f"DELETE FROM {table}" for table in ("messages", "erasures", "events")),
    ],
    "scope deleted, its events marked as erased": [
        *NO_SEALS,
        *EMPTY,
        "DELETE FROM messages",
        "UPDATE events SET erased_at = now()",
    ],
    "row inserted with an earlier date": [BACKDATED, "UPDATE seal_heads SET reopened = true"],
    "row inserted with an earlier date of an import": [
        BACKDATED,
        "UPDATE memory_history SET imported_at = now() - interval '1 day' WHERE version = 50",
    ],
    "row inserted with an earlier date and a seal": [
        BACKDATED,
        "INSERT INTO seals (lane_id, number, project_id, kind, row_id, row_no, digest, link)"
        " SELECT gen_random_uuid(), 1, project_id, 'history', memory_id, 50, '', ''"
        " FROM memory_history WHERE version = 50",
        "DELETE FROM seal_queue",
    ],
    "head set back to 0": [
        EDIT,
        "DELETE FROM seals",
        "UPDATE seal_heads SET number = 0, link = '', key_id = '', reopened = true",
    ],
    "event's messages deleted, as if erased": [
        "DELETE FROM messages WHERE seq = 2",
        "UPDATE seals SET erased_by = (SELECT event_id FROM erasures LIMIT 1), salt = NULL"
        " WHERE kind = 'event' AND row_id IN (SELECT id FROM events WHERE seq = 2)",
        "UPDATE events SET erased_at = now(), options = '{}' WHERE seq = 2",
    ],
    "switched off in the database": ["UPDATE projects SET tamper_evidence = NULL"],
    "unsigned entry covers a removed row": [
        NEW_ERASURE,
        "DELETE FROM memory_history WHERE version = 2",
        ENTRY_OF
        + " SELECT project_id, 'erasure', lane_id, erased_by, 0, '1-99', 'x', 'x' FROM seals"
        " WHERE erased_by IS NOT NULL",
    ],
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forgery_is_named_before_and_after_the_sweeper(service: Service, name: str) -> None:
    """Each is what a person with write access to the database, but without the key, can do."""
    await live(service)
    erasures = service.engine.ledger.erasures
    await erasures.erase(service.engine.project.id, OwnerKey("user", "nobody-at-all"))
    await settle(service)
    for step in FORGERIES[name]:
        await (execute(service, step) if isinstance(step, str) else step(service))
    before = (await verify(service))["faults"]
    for _ in range(3):
        service.engine.ledger.seals._refused.clear()
        await seal(service)
    assert (bool(before), bool((await verify(service))["faults"])) == (True, True)


async def settle(service: Service) -> None:
    """Seal until nothing is left, and let an hour pass since."""
    while await seal(service):
        pass
    assert (await verify(service))["ok"] is True


async def test_what_comes_after_a_forgery_is_not_signed(service: Service) -> None:
    await live(service)
    await execute(service, EDIT)
    await rewrite_chain(service)
    await service.add("I like coffee.")
    assert await seal(service) == 0
    kinds = {fault["kind"] for fault in (await verify(service))["faults"]}
    assert "seal" in kinds
