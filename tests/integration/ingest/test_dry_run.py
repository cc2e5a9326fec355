"""Dry run: the receipt that an operation would get, and a store that is left as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.usage import Answer, Usage
from pipeline.ports import ExtractionRequest
from pipeline.stores import Ledger
from tests.integration.ingest.test_decisions import Careless
from tests.support.api_service import ADD, MAYA, Service, error_of, serving
from tests.support.engine import Engine
from tests.support.raw_look import COLUMNS

# Tables with the record of a dry run: its event and place in the lane, its outputs and costs.
OWN = {
    *("events", "lanes", "stage_runs", "event_costs", "usage_daily", "kept_answers"),
    *("books", "book_entries"),
}
PAID = Usage("fake/paid", 1, 100, 10, 0.001, "fake@1")


@dataclass
class Paid(RulesModel):
    """The rules, as a model that is paid for and never answers the same question alike."""

    calls: list[str] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.calls.append("extract")
        answer = await super().extract(request)
        return Answer(answer.value, PAID, answer.note)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        self.calls.append("decide")
        answer = await super().decide(facts, neighbours, instructions)
        return Answer(answer.value, PAID, answer.note)

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        self.calls.append("relate")
        return Answer((await super().relate(request)).value, PAID)


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        service.engine.with_model(Paid())
        yield service


async def rows(ledger: Ledger) -> Mapping[str, list[str]]:
    """Every row of every table but the audit log, as text."""
    async with ledger.engine.connect() as connection:
        tables = {table for table, _ in (await connection.execute(COLUMNS)).all()}
        return {
            table: sorted(
                (await connection.scalars(text(f'SELECT CAST(t AS text) FROM "{table}" t'))).all()
            )
            for table in sorted(tables - {"audit_entries"})
        }


async def look(service: Service) -> dict[str, Any]:
    """Everything that a dry run must leave as it is: tables, vectors, hints, and what reads see."""
    engine = service.engine
    vectors = {
        name: sorted(
            (str(r.id), tuple(r.vector))
            for r in await engine.vectors.list(name, where={}, limit=1_000)
        )
        for name in await engine.vectors.list_cols()
    }
    tables = await rows(engine.ledger)
    reads = {
        path: (await service.client.get(path)).json()
        for path in ("/v1/memories/events/", "/v1/entities/", "/v1/suggestions/")
    }
    return {
        "tables": {name: lines for name, lines in tables.items() if name not in OWN},
        "vectors": vectors,
        "hints": list(engine.hints.waiting),
        "list": await service.listed(),
        "turns": await service.search("Bern", include=["facts", "turns"]),
        "reads": reads,
    }


async def dry(service: Service, *texts: str, **body: object) -> dict[str, Any]:
    """The dry run of an add, once it has ended."""
    return await service.event(await service.add(*texts, dry_run=True, **body))


def lines(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Receipt lines without the ids of memories that did not exist before."""
    return [
        {name: value for name, value in line.items() if name != "id" or line["event"] != "ADD"}
        for line in event["results"]
    ]


async def test_a_dry_run_of_an_add_is_the_receipt_that_follows_and_writes_nothing(
    service: Service,
) -> None:
    await service.add("I live in Bern.", "I like tea.")
    await service.engine.services.index.catch_up()
    before = await look(service)
    event = await dry(service, "I moved to Porto.", "I like tea.", "I own a boat.")
    assert await look(service) == before
    assert (event["event_type"], event["status"]) == ("DRY_RUN", "SUCCEEDED")
    assert event["note"] == "Dry run: nothing was written."
    assert {line["event"] for line in event["results"]} >= {"UPDATE", "NOOP", "ADD"}
    assert event["usage"]["calls"] == 3
    assert event["usage"]["cost_usd"] == pytest.approx(0.003)
    assert [message["content"] for message in event["payload"]["messages"]] == [
        *("I moved to Porto.", "I like tea.", "I own a boat.")
    ]
    real = await service.event(
        await service.add("I moved to Porto.", "I like tea.", "I own a boat.")
    )
    assert lines(real) == lines(event)
    assert all(line["id"] is None for line in event["results"] if line["event"] == "ADD")


async def test_the_real_run_takes_the_answers_that_the_dry_run_has_paid_for(
    service: Service,
) -> None:
    model = Paid()
    service.engine.with_model(model)
    await service.add("I live in Bern.")
    await dry(service, "I moved to Porto.")
    paid = list(model.calls)
    real = await service.event(await service.add("I moved to Porto."))
    assert model.calls == paid
    assert (real["usage"]["calls"], real["usage"]["models"]) == (0, ["fake/paid"])
    assert real["results"][0]["event"] == "UPDATE"


async def test_answers_about_another_store_are_not_taken(service: Service) -> None:
    model = Paid()
    service.engine.with_model(model)
    await dry(service, "I moved to Porto.")
    await service.add("I live in Bern.")
    model.calls.clear()
    real = await service.event(await service.add("I moved to Porto."))
    assert model.calls[:2] == ["extract", "decide"]  # other messages came before, other memories
    assert real["results"][0]["event"] == "UPDATE"


async def test_answers_are_kept_for_a_limited_time_and_then_deleted(service: Service) -> None:
    model = Paid()
    service.engine.with_model(model)
    await dry(service, "I moved to Porto.")
    async with service.engine.ledger.engine.begin() as connection:
        past = text("UPDATE kept_answers SET expires_at = now() - interval '1 second'")
        await connection.execute(past)
    model.calls.clear()
    await service.add("I moved to Porto.")
    assert "extract" in model.calls
    assert await service.engine.retention.forget_answers() > 0
    assert (await rows(service.engine.ledger))["kept_answers"] == []


async def test_a_dry_run_of_a_repeated_turn_calls_no_model_either(service: Service) -> None:
    model = Paid()
    service.engine.with_model(model)
    for text_ in ("I own a boat.", "I like tea."):
        await service.add(text_)
    model.calls.clear()
    event = await dry(service, "I own a boat.")
    assert "extract" not in model.calls
    real = await service.event(await service.add("I own a boat."))
    assert lines(real) == lines(event)
    assert [line["event"] for line in event["results"]] == ["NOOP"]


async def test_two_equal_dry_runs_do_not_share_a_batch(service: Service) -> None:
    body = {"messages": "I own a boat.", "dry_run": True} | MAYA
    ids = [(await service.client.post(ADD, json=body)).json()["event_id"] for _ in range(2)]
    await service.engine.drain()
    first, second = [await service.event(event_id) for event_id in ids]
    assert lines(first) == lines(second)
    assert [line["event"] for line in second["results"]] == ["ADD"]


async def test_a_dry_run_waits_for_the_events_before_it(service: Service) -> None:
    await service.client.post(ADD, json={"messages": "I live in Bern."} | MAYA)
    event = await dry(service, "I moved to Porto.")
    assert [line["event"] for line in event["results"]] == ["UPDATE"]


async def test_a_verbatim_dry_run_calls_no_model(service: Service) -> None:
    model = Paid()
    service.engine.with_model(model)
    body = {"messages": "Locker 7.", "dry_run": True, "infer": False} | MAYA
    answer = await service.client.post(ADD, json=body)
    await service.engine.drain()
    event = await service.event(answer.json()["event_id"])
    assert [line["memory"] for line in event["results"]] == ["Locker 7."]
    assert model.calls == []
    assert await service.listed() == []


async def test_a_dry_run_without_facts_says_so(service: Service) -> None:
    event = await dry(service, "How are you?")
    assert event["results"] == []
    assert event["note"].startswith("Dry run: nothing was written. ")


async def test_a_dry_run_neither_undoes_nor_takes_other_messages(service: Service) -> None:
    event = await dry(service, "I own a boat.")
    refused = await service.client.post(f"/v1/event/{event['id']}/undo/", json={})
    assert refused.status_code == 409
    assert "dry run" in error_of(refused)


async def test_erasure_deletes_what_a_dry_run_keeps(service: Service) -> None:
    await dry(service, "I own a boat in Zanzibar.")
    await service.client.delete("/v2/entities/user/maya/")
    left = [line for table in (await rows(service.engine.ledger)).values() for line in table]
    assert not [line for line in left if "Zanzibar" in line]


# ── other operations ─────────────────────────────────────────────────────────────────────────────


async def test_a_dry_run_of_an_undo_is_the_answer_that_follows(service: Service) -> None:
    await service.add("I live in Bern.")
    event_id = await service.add("I moved to Porto.", "I own a boat.")
    before = await look(service)
    path = f"/v1/event/{event_id}/undo/"
    planned = await service.client.post(path, json={"dry_run": True})
    assert planned.status_code == 200, planned.text
    assert await look(service) == before
    assert planned.json()["undone_at"] is None
    assert planned.json()["removed"]
    assert planned.json()["restored"]
    undone = await service.client.post(path, json={})
    assert undone.json() | {"undone_at": None} == planned.json()


@pytest.mark.parametrize("text", [None, "Maya lives in Porto, without Tom"])
async def test_a_dry_run_of_an_acceptance_is_the_receipt_that_follows(
    service: Service, text: str | None
) -> None:
    service.engine.with_model(Careless())
    await service.add("Maya lives in Bern with Tom")
    await service.add("Maya lives in Porto")
    await service.engine.services.index.catch_up()
    [suggestion] = (await service.client.get("/v1/suggestions/")).json()["results"]
    before, tables = await look(service), await rows(service.engine.ledger)
    path = f"/v1/suggestions/{suggestion['id']}/accept/"
    body = {"text": text} if text else {}
    planned = await service.client.post(path, json=body | {"dry_run": True})
    assert planned.status_code == 200, planned.text
    assert await look(service) == before
    # No record of its own either: not a row of any table differs.
    assert await rows(service.engine.ledger) == tables
    assert planned.json()["dry_run"] is True
    accepted = await service.client.post(path, json=body)
    event = await service.event(accepted.json()["decision_event_id"])
    assert planned.json()["results"] == event["results"]
    assert planned.json()["note"] == event["note"]
    assert [line["event"] for line in event["results"]] == ["UPDATE", "DELETE"]


async def test_a_dry_run_of_an_acceptance_is_refused_like_the_acceptance(service: Service) -> None:
    service.engine.with_model(Careless())
    await service.add("Maya lives in Bern with Tom")
    await service.add("Maya lives in Porto")
    [suggestion] = (await service.client.get("/v1/suggestions/")).json()["results"]
    [target] = suggestion["targets"]
    await service.client.put(
        f"/v1/memories/{target['memory_id']}/", json={"text": "Maya lives in Bern with Ana"}
    )
    tables = await rows(service.engine.ledger)
    path = f"/v1/suggestions/{suggestion['id']}/accept/"
    planned = await service.client.post(path, json={"dry_run": True})
    assert await rows(service.engine.ledger) == tables
    refused = await service.client.post(path, json={})
    assert (planned.status_code, refused.status_code) == (409, 409)
    assert error_of(planned) == error_of(refused)
    gone = await service.client.post(
        path.replace(suggestion["id"], target["memory_id"]), json={"dry_run": True}
    )
    assert gone.status_code == 404


@pytest.mark.parametrize("condition", [{}, {"metadata": '{"trip": "x"}'}])
async def test_a_dry_run_of_a_delete_by_filter_is_the_receipt_that_follows(
    service: Service, condition: dict[str, str]
) -> None:
    await service.add("I live in Bern.", "I like tea.", metadata={"trip": "x"})
    before = await look(service)
    query = MAYA | condition
    planned = await service.client.delete("/v1/memories/", params=query | {"dry_run": "true"})
    assert planned.status_code == 200, planned.text
    assert await look(service) == before
    assert planned.json()["dry_run"] is True
    deleted = await service.client.delete("/v1/memories/", params=query)
    event = await service.event(deleted.json()["event_id"])
    assert planned.json()["results"] == event["results"]
    assert planned.json()["note"] == event["note"]
    assert len(event["results"]) == 2


async def test_a_dry_run_of_a_delete_counts_the_events_it_would_cancel(service: Service) -> None:
    waiting = (await service.client.post(ADD, json={"messages": "I like tea."} | MAYA)).json()
    query = MAYA | {"dry_run": "true"}
    planned = await service.client.delete("/v1/memories/", params=query)
    assert planned.json()["cancelled"] == 1
    assert (await service.event(waiting["event_id"]))["status"] == "PENDING"


async def test_a_delete_with_dry_run_in_its_body_is_refused(service: Service) -> None:
    await service.add("I like tea.")
    refused = await service.client.request(
        "DELETE", "/v1/memories/", params=MAYA, json={"dry_run": True}
    )
    assert refused.status_code == 400
    assert len(await service.listed()) == 1


async def test_a_dry_run_of_a_replay_is_an_event_of_its_own(service: Service) -> None:
    waiting = (await service.client.post(ADD, json={"messages": "I own a boat."} | MAYA)).json()
    await service.client.post(f"/v1/event/{waiting['event_id']}/cancel/")
    await service.engine.drain()
    path = f"/v1/event/{waiting['event_id']}/replay/"
    begun = await service.client.post(path, json={"dry_run": True})
    assert begun.status_code == 200, begun.text
    assert begun.json()["event_type"] == "DRY_RUN"
    await service.engine.drain()
    planned = await service.event(begun.json()["id"])
    assert await service.listed() == []
    await service.client.post(path, json={})
    await service.engine.drain()
    real = await service.event(waiting["event_id"])
    assert lines(real) == lines(planned)
    assert real["usage"]["calls"] < planned["usage"]["calls"]


async def test_a_dry_run_of_a_replay_takes_other_messages(service: Service) -> None:
    waiting = (await service.client.post(ADD, json={"messages": "I own a boat."} | MAYA)).json()
    await service.client.post(f"/v1/event/{waiting['event_id']}/cancel/")
    body = {"dry_run": True, "messages": "I own a bike."}
    begun = await service.client.post(f"/v1/event/{waiting['event_id']}/replay/", json=body)
    await service.engine.drain()
    [line] = (await service.event(begun.json()["id"]))["results"]
    assert "bike" in line["memory"]


async def test_only_a_failed_add_has_a_dry_run_of_its_replay(service: Service) -> None:
    event_id = await service.add("I own a boat.")
    refused = await service.client.post(f"/v1/event/{event_id}/replay/", json={"dry_run": True})
    assert refused.status_code == 409
