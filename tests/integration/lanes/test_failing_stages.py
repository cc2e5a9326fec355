"""Stages that fail: which errors wait, which end an event, and by which code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer, ModelUnavailable
from pipeline.domain.events import Status
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.ledger.failures import ACTIVE_TEXT
from pipeline.ports import ExtractionRequest
from tests.support.engine import Engine
from tests.support.troubled import Troubled


async def test_a_model_outage_parks_the_lane_and_costs_no_attempt(engine: Engine) -> None:
    model = Troubled(word="jazz", error=ModelUnavailable("503"), times=9)
    engine.with_model(model)
    event_id = await engine.add("I like jazz.")
    for _ in range(9):
        await engine.drain()
        event = await engine.event(event_id)
        assert event.status is Status.RUNNING
        assert event.wait_code == "LLM_UNAVAILABLE"
        assert event.wait_until is not None
        await engine.pass_time(2000)
        assert await engine.sweep() == 1
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_an_outage_longer_than_the_budget_fails_the_event_by_name(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    await engine.pass_time(2000)
    await engine.sweep()
    engine.services = replace(engine.services, outage_budget_s=0.0)
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "DEADLINE")
    assert "LLM_UNAVAILABLE" in (event.failure_detail or "")
    assert await engine.lane_state() == "IDLE"


async def test_an_event_with_a_retry_after_of_days_fails_at_its_own_deadline(
    engine: Engine,
) -> None:
    budget_s = engine.services.outage_budget_s
    engine.with_model(Troubled(error=ModelUnavailable("429", retry_after_s=3 * budget_s)))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    await engine.pass_time(budget_s - 5)
    assert await engine.sweep() == 0
    await engine.pass_time(10)
    assert await engine.sweep() == 1
    await engine.age(budget_s + 5)
    await engine.drain()
    assert (await engine.event(event_id)).failure_code == "DEADLINE"


async def test_the_wait_behind_a_backlog_uses_nothing_of_the_outage_budget(
    engine: Engine,
) -> None:
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503"), times=1))
    event_id = await engine.add("I like jazz.")
    await engine.age(2 * engine.services.outage_budget_s)
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "LLM_UNAVAILABLE"
    await engine.pass_time(2000)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_one_bad_event_among_seven_fails_alone(engine: Engine) -> None:
    model = Troubled(word="poison", error=MalformedAnswer("no JSON"))
    engine.with_model(model)
    texts = [
        "I like jazz.",
        "I like chess.",
        "I like tea.",
        "poison",
        "I like rye.",
        "I like rain.",
    ]
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    statuses = [(await engine.event(event_id)).status for event_id in ids]
    assert statuses == [Status.FAILED if text == "poison" else Status.SUCCEEDED for text in texts]
    assert (await engine.event(ids[3])).failure_code == "LLM_BAD_OUTPUT"
    assert len(await engine.texts()) == 5
    assert model.calls[0] == 6  # first tried in one batch


async def test_a_surprise_in_a_stage_is_internal_and_names_only_its_type(engine: Engine) -> None:
    engine.with_model(Troubled(word="jazz", error=KeyError("I like jazz.")))
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.failure_code, event.failure_detail) == ("INTERNAL", "KeyError")


class Extracting(RulesModel):
    """Model whose facts contain a character that PostgreSQL cannot store."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer((Fact("User likes \0", request.messages[0].source),))


async def test_what_the_ledger_refuses_to_store_fails_at_once_by_its_code(engine: Engine) -> None:
    engine.with_model(Extracting())
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "INTERNAL")
    assert event.failure_detail == "The ledger refused to store it (SQLSTATE 22P05)."


async def test_a_state_of_the_ledger_that_passes_is_waited_for(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    refuse = (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '53100' USING MESSAGE = 'disk full'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON stage_runs EXECUTE FUNCTION refuse()",
    )
    async with engine.ledger.engine.begin() as connection:
        for statement in refuse:
            await connection.execute(text(statement))
    await engine.step()
    event = await engine.event(event_id)
    assert (event.status, event.wait_code) == (Status.RUNNING, "STORE_UNAVAILABLE")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("DROP TRIGGER refuse ON stage_runs"))
    await engine.pass_time(60)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


class Naming(RulesModel):
    """Model that returns a very long text as the name of an entity."""

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        user = Entity("User", "person")
        page = Entity("".join(chr(97 + n * n % 26) + str(n) for n in range(4_000)), "thing")
        named = Relation(user, "likes", Entity("jazz", "music"), 0)
        return Answer(GraphChanges((named, Relation(user, "likes", page, 0))))


async def test_a_relation_with_a_name_longer_than_an_index_entry_is_left_out(
    engine: Engine,
) -> None:
    engine.with_model(Naming())
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == (Status.SUCCEEDED, "PARTIAL")
    assert "more than 300 characters" in str(event.failure_detail)
    [relation] = await engine.relations("jazz")
    assert relation.destination == "jazz"


async def test_a_stage_whose_writes_always_conflict_fails(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    clash = (
        "CREATE FUNCTION clash() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE unique_violation USING CONSTRAINT = '{ACTIVE_TEXT}'; END $$",
        "CREATE TRIGGER clash BEFORE INSERT ON memories EXECUTE FUNCTION clash()",
    )
    async with engine.ledger.engine.begin() as connection:
        for statement in clash:
            await connection.execute(text(statement))
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.failure_code, event.failure_detail) == ("INTERNAL", "MovedOn")


async def test_a_lane_may_wait_more_often_than_a_small_number_counts(engine: Engine) -> None:
    await engine.add("I like jazz.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE lanes SET waits = 32767"))
    engine.with_model(Troubled(word="jazz", error=ModelUnavailable("503")))
    await engine.step()
    assert await engine.lane_state() == "WAITING"


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE messages SET said_at = '-infinity' WHERE content LIKE '%jazz%'",
        """UPDATE events SET options = options || '{"infer": "never"}' WHERE seq = 1""",
    ],
)
async def test_an_event_that_cannot_be_read_fails_and_the_next_ones_go_on(
    engine: Engine, spoil: str
) -> None:
    event_id = await engine.add("I like jazz.")
    later = await engine.add("I live in Berlin.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text(spoil))
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.failure_code) == (Status.FAILED, "INTERNAL")
    assert (await engine.event(later)).status is Status.SUCCEEDED
    assert await engine.lane_state() == "IDLE"
