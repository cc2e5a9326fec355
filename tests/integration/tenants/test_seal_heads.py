"""Signed heads: the sweeper's turns, pages of a verification, keys, upgrades, recorded heads."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.erasure.store import OwnerKey
from pipeline.seals import sealing, verification
from pipeline.seals import store as seals
from pipeline.seals.keys import key_id
from pipeline.seals.verification import Verification
from pipeline.tenants.projects import Projects
from tests.integration.tenants.test_seals import (
    EDIT,
    KEY,
    execute,
    live,
    seal,
    service,
    settle,
    verify,
)
from tests.support.api_service import Service
from tests.support.plans import recorded

__all__ = ["service"]
NEW_KEY = b"the key that follows"


async def values(service: Service, statement: str) -> Sequence[Any]:
    async with service.engine.ledger.engine.connect() as connection:
        return (await connection.scalars(text(statement))).all()


def use_keys(service: Service, monkeypatch: pytest.MonkeyPatch, *keys: bytes) -> None:
    by_id = {key_id(key): key for key in keys}
    monkeypatch.setattr(service.engine.ledger.seals.keys, "_by_id", by_id)


# ── the sweeper ──────────────────────────────────────────────────────────────────────────────────


async def test_without_tamper_evidence_a_tick_is_one_statement(service: Service) -> None:
    await execute(service, "DELETE FROM seal_projects")
    await service.add("I live in Bern.")
    with recorded(service.engine.ledger.pools.long) as statements:
        assert await seal(service) == 0
    assert len(statements) == 1


async def test_rows_of_projects_without_tamper_evidence_are_not_queued(service: Service) -> None:
    await execute(service, "UPDATE projects SET tamper_evidence = NULL")
    await execute(service, "DELETE FROM seal_queue")
    await service.add("I live in Bern.")
    assert await values(service, "SELECT id FROM seal_queue") == []


async def test_a_project_takes_turns_with_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large project, and a pass that is cut off, delay no other project."""
    monkeypatch.setattr(seals, "TURN_S", 0.0)
    monkeypatch.setattr(sealing, "AT_ONCE", 1)
    for user in ("a", "b", "c", "d"):
        await service.add("I live in Bern.", user_id=user)
    ledger = service.engine.ledger
    small, _ = await Projects(ledger.engine).create("small")
    await ledger.seals.switch(small.id, on=True)
    turns: list[ProjectId] = []
    batch = seals.Seals._batch

    async def counting(self: seals.Seals, project_id: ProjectId) -> Any:
        turns.append(project_id)
        return await batch(self, project_id)

    monkeypatch.setattr(seals.Seals, "_batch", counting)
    await settle(service)
    last = max(n for n, project_id in enumerate(turns) if project_id == small.id)
    assert last < len(turns) - 4  # the large one had several turns left


async def test_a_project_whose_statement_fails_stops_no_other(service: Service) -> None:
    """A forged seal takes the number of the next one, so the sweeper's insert fails."""
    await live(service)
    await settle(service)
    ledger = service.engine.ledger
    small, _ = await Projects(ledger.engine).create("small")
    await ledger.seals.switch(small.id, on=True)
    await settle(service)
    forged = (
        "INSERT INTO seals (lane_id, number, project_id, kind, row_id, row_no, digest, link)"
        " SELECT lane_id, number + 1, project_id, kind, row_id, row_no, digest, link FROM seals"
        " WHERE (lane_id, number) IN (SELECT lane_id, max(number) FROM seals GROUP BY 1)"
    )
    await execute(service, forged)
    await service.add("I like coffee.")
    await service.engine.send(Scope(small.id, user_id="jon"), [Message(Role.USER, "I like tea.")])
    await service.engine.drain()
    order = "SELECT project_id FROM seal_projects ORDER BY sealed_at"
    assert await values(service, order) == [service.engine.project.id, small.id]
    with capture_logs() as lines:
        assert await seal(service) > 0
    assert "seal_failed" in {line["event"] for line in lines}
    waiting = await values(service, "SELECT DISTINCT project_id FROM seal_queue")
    assert waiting == [service.engine.project.id]


async def test_a_lane_whose_head_fails_is_left_alone_and_others_are_sealed(
    service: Service,
) -> None:
    await live(service)
    await settle(service)
    await execute(service, "UPDATE seal_heads SET link = sha256('x')")
    await service.add("I like coffee.")
    await service.add("I live in Bern.", user_id="jon")
    with capture_logs() as lines:
        assert await seal(service) > 0
    refused = [line for line in lines if line["event"] == "seal_refused"]
    assert {line["what"] for line in refused} == {"lane"}
    assert {fault["problem"] for fault in (await verify(service))["faults"]} == {"head"}
    waiting = await values(service, "SELECT id FROM seal_queue WHERE due_at > now()")
    assert waiting  # they are tried again, once the head is restored


async def test_a_lane_whose_chain_was_changed_is_not_signed_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live(service)
    await settle(service)
    await execute(service, "UPDATE seals SET digest = sha256('x') WHERE number = 2")
    monkeypatch.setattr(service.engine.ledger.seals, "_verified", sealing.Verified())
    await service.add("I like coffee.")
    assert await seal(service) == 0


async def test_a_row_of_a_long_transaction_is_no_false_alarm(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its date is that of the transaction's start; rows with later dates are sealed before it."""
    monkeypatch.setattr(sealing, "CLOCK_SKEW", timedelta(0))
    await live(service)
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO memory_history (memory_id, version, project_id, event, new_text,"
                " reason, valid_from) SELECT memory_id, 50, project_id, 'UPDATE', 'late', 'x',"
                " now() FROM memory_history LIMIT 1"
            )
        )
        await service.add("I like coffee.", user_id="jon")
        await settle(service)
    assert await seal(service) == 1
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"]) == (True, 0)
    await settle(service)
    inserted = "UPDATE memory_history SET created_at = created_at - interval '1 s', version = 51"
    await execute(service, f"{inserted} WHERE version = 50")
    assert {fault["problem"] for fault in (await verify(service))["faults"]} == {
        "inserted",
        "removed",
    }


async def test_a_large_lane_is_sealed_in_parts(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "OF_LANE", 1)
    await live(service)
    await service.add("I like coffee.")
    ledger = service.engine.ledger
    await ledger.seals.switch(service.engine.project.id, on=False)
    await service.add("I own a boat.")
    await ledger.seals.switch(service.engine.project.id, on=True)
    await settle(service)
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"], answer["state"]) == (True, 0, "complete")
    assert await values(service, "SELECT id FROM seal_queue") == []


# ── verification ─────────────────────────────────────────────────────────────────────────────────


async def test_a_verification_beside_the_sweeper_sees_one_state(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live(service)
    await service.add("I like coffee.")
    of_buckets = Verification._of_buckets

    async def beside(self: Verification, *given: Any) -> Any:
        assert await seal(service) > 0  # between the heads and the chains
        monkeypatch.setattr(Verification, "_of_buckets", of_buckets)
        return await of_buckets(self, *given)

    monkeypatch.setattr(Verification, "_of_buckets", beside)
    assert (await verify(service))["faults"] == []


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
async def test_a_verification_in_small_pages_gives_the_same_result(
    service: Service, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    for user in ("maya", "jon", "ana"):
        await service.add("I live in Bern.", user_id=user)
    await live(service)
    await settle(service)
    whole = await verify(service)
    monkeypatch.setattr(verification, "ROWS", rows)
    monkeypatch.setattr(verification, "EVENTS", rows)
    monkeypatch.setattr(verification, "HEADS", 2)
    paged = await verify(service)
    assert (paged["sealed"], paged["ok"]) == (whole["sealed"], True)
    await execute(service, EDIT)
    await execute(service, "DELETE FROM seal_heads WHERE number = (SELECT min(number) FROM seals)")
    [fault] = (await verify(service))["faults"]
    assert (fault["problem"], fault["kind"]) == ("edited", "history")


async def test_only_an_admin_key_verifies_and_only_one_at_a_time(service: Service) -> None:
    ledger, project = service.engine.ledger, service.engine.project
    made = await service.client.post("/v1/keys/", json={"name": "reader", "scope": "read"})
    reader = {"Authorization": f"Token {made.json()['key']}"}
    for path in ("/v1/verify/", "/v1/verify/heads/"):
        assert (await service.client.get(path, headers=reader)).status_code == 403
    async with ledger.pools.long.begin() as connection:
        lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        await connection.execute(lock, {"name": f"verify:{project.id}"})
        assert (await service.client.get("/v1/verify/")).status_code == 409
    assert (await service.client.get("/v1/verify/")).status_code == 200


@pytest.mark.parametrize("cursor", ["x", "lanes.x.1.1", "rows.0.0.0", "events.0.1", "."])
async def test_an_invalid_cursor_is_refused(service: Service, cursor: str) -> None:
    await seal(service)
    answer = await service.client.get("/v1/verify/", params={"cursor": cursor})
    assert (answer.status_code, "cursor" in answer.text) == (400, True)


async def test_a_project_without_tamper_evidence_is_not_ok_and_reads_nothing(
    service: Service,
) -> None:
    await live(service)
    await service.engine.ledger.seals.switch(service.engine.project.id, on=False)
    with recorded(service.engine.ledger.pools.verifying) as statements:
        answer = await verify(service)
    assert (answer["ok"], answer["enabled"], answer["faults"]) == (False, False, [])
    assert not [words for words, _ in statements if "FROM seals" in words]


# ── keys and upgrades ────────────────────────────────────────────────────────────────────────────


async def test_a_former_key_is_accepted_until_all_is_signed_with_the_new_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("maya", "jon"):
        await service.add("I live in Bern.", user_id=user)
    await settle(service)
    use_keys(service, monkeypatch, NEW_KEY, KEY)
    assert (await verify(service))["ok"] is True
    await settle(service)
    use_keys(service, monkeypatch, NEW_KEY)
    await service.add("I like tea.")
    await settle(service)
    heads = (await service.client.get("/v1/verify/heads/")).json()["results"]
    assert [head["valid"] for head in heads] == [True]
    assert set(await values(service, "SELECT key_id FROM seal_heads")) == {key_id(NEW_KEY)}


async def as_release_0_1_0(service: Service) -> None:
    """Set the seals back to the state in which the migration of an earlier release leaves them."""
    async with service.engine.ledger.engine.begin() as connection:
        for row in (await connection.execute(text("SELECT * FROM seal_heads"))).all():
            signed = hmac.digest(KEY, f"{row.lane_id}:{row.number}:".encode() + row.link, "sha256")
            await connection.execute(
                text(
                    "UPDATE seal_heads SET key_id = '', signature = :signed WHERE lane_id = :lane"
                ),
                {"signed": signed, "lane": row.lane_id},
            )
        for table in ("seal_buckets", "seal_checkpoints", "seal_projects", "seal_queue"):
            await connection.execute(text(f"DELETE FROM {table}"))
        await connection.execute(
            text(
                "INSERT INTO seal_projects (project_id, state)"
                " SELECT id, 'adopting' FROM projects WHERE tamper_evidence"
            )
        )


async def test_seals_of_the_release_before_are_verified_once_and_signed_again(
    service: Service,
) -> None:
    for user in ("maya", "jon", "ana"):
        await service.add("I live in Bern.", user_id=user)
    await settle(service)
    await service.engine.ledger.erasures.erase(service.engine.project.id, OwnerKey("user", "jon"))
    await execute(service, "DELETE FROM seal_queue")
    await as_release_0_1_0(service)
    assert (await verify(service))["faults"] == []
    await settle(service)
    answer = await verify(service)
    assert (answer["ok"], answer["waiting"], answer["state"]) == (True, 0, "complete")
    assert "" not in await values(service, "SELECT key_id FROM seal_heads")
    await execute(service, "UPDATE seals SET erased_by = row_id WHERE kind = 'history'")
    assert (await verify(service))["ok"] is False


async def test_a_head_of_the_release_before_that_fails_is_named(service: Service) -> None:
    for user in ("maya", "jon"):
        await service.add("I live in Bern.", user_id=user)
    await settle(service)
    await as_release_0_1_0(service)
    first = "(SELECT min(lane_id::text)::uuid FROM seal_heads)"
    await execute(service, f"UPDATE seal_heads SET signature = '' WHERE lane_id = {first}")
    for _ in range(3):
        await seal(service)
        faults = (await verify(service))["faults"]
        assert [(fault["problem"], fault["kind"]) for fault in faults] == [("head", "seal")]


async def test_a_sweeper_of_the_release_before_cannot_overwrite_a_head(service: Service) -> None:
    await live(service)
    with pytest.raises(Exception, match="ck_seal_heads_format"):
        await execute(service, "UPDATE seal_heads SET number = number + 1, signature = sha256('x')")


# ── recorded heads ───────────────────────────────────────────────────────────────────────────────


async def test_heads_go_to_the_log_and_to_webhooks(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.engine.ledger.seals, "_checkpoint_every", timedelta(0))
    made = await service.client.post(
        f"/api/v1/webhooks/projects/{service.engine.project.id}/",
        json={"name": "heads", "url": "https://example.org/heads", "event_types": ["seal_head"]},
    )
    assert made.is_success, made.text
    with capture_logs() as lines:
        await live(service)
        await settle(service)
        await service.add("I like coffee.")
        await settle(service)
    logged = {line["number"]: line["root"] for line in lines if line["event"] == "seal_head"}
    stored = (await service.client.get("/v1/verify/heads/")).json()["results"]
    assert logged == {head["number"]: head["root"] for head in stored}
    assert len(logged) >= 2
    bodies = await values(service, "SELECT body FROM webhook_deliveries")
    assert all(any(root in body for body in bodies) for root in logged.values())
    later = (await service.client.get("/v1/verify/heads/", params={"after": 1})).json()
    assert [head["number"] for head in later["results"]] == [n for n in logged if n > 1]
    await execute(service, "DELETE FROM seal_checkpoints WHERE number = 1")
    assert (await verify(service))["ok"] is False
