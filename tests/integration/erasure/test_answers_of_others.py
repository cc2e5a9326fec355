"""An erasure withdraws the answers that were made of what it erases, and no other one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from pipeline.domain.events import StageName
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables import answer_sources, lanes
from pipeline.stores import Ledger
from tests.support.api_service import Service, serving
from tests.support.engine import Engine
from tests.support.raw_look import raw_look

SHAPE = {"properties": {"summary": {"type": "string", "description": "all"}}}
NOBODY = [OwnerKey(kind, "nobody") for kind in ("user", "agent", "app", "run")]


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def export(service: Service, filters: dict[str, Any]) -> str:
    body = {"filters": filters, "schema": SHAPE}
    answer = await service.client.post("/v1/exports/", json=body)
    await service.engine.drain()
    return str(answer.json()["id"])


async def answer_of(service: Service, event_id: str) -> str:
    return json.dumps(
        await service.engine.ledger.answers.of(service.engine.project.id, UUID(event_id))
    )


async def dry_run(engine: Engine, text: str, user_id: str) -> UUID:
    messages = [Message(Role.USER, text)]
    return await engine.send(engine.scope(user_id), messages, dry_run=True)


async def erase(service: Service, owner: OwnerKey) -> None:
    await service.engine.ledger.erasures.erase(service.engine.project.id, owner)


@pytest.mark.parametrize("owner", NOBODY)
async def test_an_owner_without_scopes_takes_no_answer_along(
    service: Service, owner: OwnerKey
) -> None:
    await service.add("I live in Bern.", user_id="jon")
    finished = await export(service, {"user_id": "jon"})
    await erase(service, owner)
    assert "Bern" in await answer_of(service, finished)


async def test_only_answers_made_of_the_erased_scopes_are_withdrawn(service: Service) -> None:
    for user_id, text in (("maya", "I live in Zanzibar."), ("jon", "I live in Bern.")):
        await service.add(text, user_id=user_id, app_id="desk")
    await service.add("I live in Lima.", user_id="zoe", app_id="other")
    of_all = await export(service, {"app_id": "desk"})
    of_jon = await export(service, {"user_id": "jon"})
    of_zoe = await export(service, {"app_id": "other"})
    await erase(service, OwnerKey("user", "maya"))
    assert await answer_of(service, of_all) == "{}"
    assert "withdrawn" in (await service.event(of_all))["note"]
    assert "Bern" in await answer_of(service, of_jon)
    assert "Lima" in await answer_of(service, of_zoe)
    async with service.engine.ledger.engine.connect() as connection:
        count = select(func.count(answer_sources.c.batch_id.distinct()))
        assert await connection.scalar(count) == 2
    assert await raw_look(service.engine.ledger, ("Zanzibar",)) == {}


async def test_a_dry_run_goes_on_and_keeps_its_receipt_whatever_else_is_erased(
    engine: Engine,
) -> None:
    await engine.add("I live in Bern.", user_id="alice")
    await engine.drain()
    done = await dry_run(engine, "I moved to Porto.", "alice")
    await engine.drain()
    going = await dry_run(engine, "I moved to Oslo.", "alice")
    await engine.run_until(StageName.CONSOLIDATE)
    for owner in NOBODY:
        await engine.ledger.erasures.erase(engine.project.id, owner)
    await engine.drain()
    for event_id, text in ((done, "User lives in Porto"), (going, "User lives in Oslo")):
        event = await engine.event(event_id)
        assert (event.status, [line.text for line in event.receipt]) == ("SUCCEEDED", [text])


async def test_an_ordinary_add_loses_no_stage_to_the_question_behind_it(service: Service) -> None:
    engine = service.engine
    await service.add("I live in Zanzibar.", user_id="maya", app_id="desk")
    scope = Scope(engine.project.id, app_id="desk")
    messages = [Message(Role.USER, "I like tea.")]
    await engine.send(scope, messages)
    await service.client.post("/v1/exports/", json={"filters": {"app_id": "desk"}, "schema": SHAPE})
    claimed, _ = await engine.claim(await engine.run_until(StageName.RETRIEVE))
    await erase(service, OwnerKey("user", "maya"))
    async with engine.ledger.engine.connect() as connection:
        lane = (await connection.execute(select(lanes).where(lanes.c.id == scope.lane_id))).one()
    assert (lane.fence, lane.stage, lane.state) == (claimed.fence, "retrieve", "RUNNING")
