"""Append mode at read: the newest statement of an attribute with one value is current."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import AddOptions, EventType, Question
from pipeline.domain.facts import Fact
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.modes import Mode
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import memories
from pipeline.memories import service as editing
from pipeline.ports import ExtractionRequest
from tests.support.api_service import LIST, MAYA, Service
from tests.support.plans import recorded, rows_read

SHAPE = {"type": "object", "properties": {"city": {"type": "string"}}}
APPEND = AddOptions(mode=Mode.APPEND)
DAY_ONE = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Slots(RulesModel):
    """Each message is one fact about Maya: `residence: …` names its attribute."""

    distilled: list[str] | None = None

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        facts = []
        for row in request.messages:
            attribute, _, content = row.message.content.partition(": ")
            facts.append(Fact(content, row.source, Role.USER, subject="Maya", attribute=attribute))
        return Answer(tuple(facts))

    async def distil(self, question: Question, memories: Any) -> Answer[Any]:
        self.distilled = list(memories)
        return Answer({"city": None})


@pytest.fixture
def model(service: Service) -> Slots:
    slots = Slots()
    service.engine.with_model(slots)
    return slots


async def say(service: Service, content: str, *, day: int, **options: Any) -> UUID:
    engine = service.engine
    event_id = await engine.send(
        engine.scope(),
        [Message(Role.USER, content)],
        replace(APPEND, **options),
        said_at=DAY_ONE + timedelta(days=day),
    )
    await engine.drain()
    return event_id


async def listed(service: Service, **body: Any) -> dict[str, dict[str, Any]]:
    answer = await service.client.post(LIST, json={"filters": MAYA} | body)
    return {row["memory"]: row for row in answer.json()["results"]}


async def test_every_read_tells_the_newest_statement_from_the_older_ones(
    service: Service, model: Slots
) -> None:
    await say(service, "residence: Maya lives in Porto.", day=2)
    await say(service, "residence: Maya lives in Bern.", day=1)  # arrives late
    await say(service, "residence: Maya lives in Rome.", day=3)
    await say(service, "likes: Maya likes tea.", day=1)
    await say(service, "likes: Maya likes jazz.", day=2)
    current = {"Maya lives in Rome.", "Maya likes tea.", "Maya likes jazz."}
    assert set(await listed(service)) == current
    v1 = await service.client.get("/v1/memories/", params={"user_id": "maya"})
    assert {row["memory"] for row in v1.json()} == current
    assert {row["memory"] for row in await service.search("Maya", threshold=0)} == current
    # All of them, on request: the older ones name the current one.
    whole = await listed(service, show_superseded=True)
    rome = whole["Maya lives in Rome."]["id"]
    replaced = {row["memory"]: row["replaced_by"] for row in whole.values() if row["replaced_by"]}
    assert replaced == {"Maya lives in Porto.": rome, "Maya lives in Bern.": rome}
    states = {row["lifecycle_state"] for name, row in whole.items() if name in replaced}
    assert states == {"superseded"}
    rows = await service.search("Maya", threshold=0, show_superseded=True)
    assert {row["memory"]: row["replaced_by"] for row in rows if row["replaced_by"]} == replaced
    for name, by in replaced.items():
        row = (await service.client.get(f"/v1/memories/{whole[name]['id']}/")).json()
        assert (row["lifecycle_state"], row["replaced_by"]) == ("superseded", by)
    # An export is answered from the current ones.
    question = Question(EventType.EXPORT, MAYA, SHAPE)
    await service.engine.add("export", options=AddOptions(question=question))
    await service.engine.drain()
    assert set(model.distilled or ()) == current


async def test_the_older_statement_is_current_again_when_the_newer_one_is_gone(
    service: Service, model: Slots
) -> None:
    await say(service, "residence: Maya lives in Bern.", day=1)
    await say(service, "residence: Maya lives in Porto.", day=2)
    porto = UUID((await listed(service))["Maya lives in Porto."]["id"])
    ledger = service.engine.ledger
    await editing.retire(
        service.engine.project.id,
        [porto],
        editing=ledger.editing,
        index=service.engine.services.index,
    )
    assert set(await listed(service)) == {"Maya lives in Bern."}


async def test_an_expired_statement_supersedes_nothing(service: Service, model: Slots) -> None:
    await say(service, "residence: Maya lives in Bern.", day=1)
    await say(service, "residence: Maya is in Porto.", day=2, expiration_date=date(2020, 1, 1))
    assert set(await listed(service)) == {"Maya lives in Bern."}


async def test_memories_that_were_compared_stand_side_by_side(
    service: Service, model: Slots
) -> None:
    await say(service, "residence: Maya lives in Bern.", day=1, mode=Mode.CONSOLIDATE)
    await say(service, "residence: Maya has a flat in Porto.", day=2, mode=Mode.CONSOLIDATE)
    assert len(await listed(service)) == 2
    # An appended one supersedes both, and is superseded by a compared one that was said later.
    await say(service, "residence: Maya lives in Rome.", day=3)
    assert set(await listed(service)) == {"Maya lives in Rome."}


async def test_an_appended_older_statement_does_not_replace_a_compared_newer_one(
    service: Service, model: Slots
) -> None:
    await say(service, "residence: Maya lives in Rome.", day=3, mode=Mode.CONSOLIDATE)
    await say(service, "residence: Maya lives in Bern.", day=1)
    assert set(await listed(service)) == {"Maya lives in Rome."}


async def test_the_newest_statement_is_found_by_an_index(service: Service, model: Slots) -> None:
    await say(service, "residence: Maya lives in Bern.", day=1)
    engine, count = service.engine.ledger.engine, 1_000
    copies = text(
        f"""INSERT INTO memories ({COPIED}, id, text, text_hash, said_at)
        SELECT {COPIED}, gen_random_uuid(), text || n, decode(md5(n::text), 'hex'),
               said_at + n * interval '1 minute'
        FROM memories, generate_series(1, CAST(:count AS integer)) n"""
    )
    async with engine.begin() as connection:
        await connection.execute(copies, {"count": count})
        await connection.execute(text("ANALYZE memories"))
    with recorded(engine) as statements:
        page, total = await service.engine.ledger.memories.page(
            service.engine.project.id, parse(MAYA), expired=False, limit=10, offset=0
        )
    assert (len(page), total) == (1, 1)
    # Each memory looks up one newer statement, not all of them.
    assert await rows_read(engine, statements) <= 2 * (count + 1)


COPIED = ", ".join(
    column.name
    for column in memories.c
    if column.name not in ("id", "text", "text_hash", "said_at", "owed")
)
