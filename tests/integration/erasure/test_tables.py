"""Every table and what covers it: the table on the page about erasures, tried out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.events import EventType
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.summaries import SummaryAfter
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey, erasures
from pipeline.ledger.tables import (
    api_keys,
    conflicts,
    event_costs,
    events,
    feedback,
    kept_answers,
    memories,
    memory_accesses,
    memory_reads,
    metadata,
    own_collections,
    owners,
    private_runs,
    profile_fields,
    profiles,
    saved_views,
    suggestions,
    summaries,
    usage_daily,
    user_tokens,
)
from pipeline.memories.delete_by_filter import DeleteRequest
from pipeline.tenants.private_runs import Privacy
from tests.support.engine import Engine
from tests.support.raw_look import raw_look

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "erasure.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
OPERATIONS = ("erasure", "end", "delete_all", "project", "expiry", "retention")
MEANINGS = {"deleted", "emptied", "hidden", "kept", "–"}
COVERED = {
    name: dict(zip(OPERATIONS, cells.split(" | "), strict=True))
    for name, cells in ROW.findall(PAGE.read_text("utf-8"))
}
USER, RUN = "wanda-4711", "visit-4711"
WORDS = (USER, RUN, "Zanzibar", "zanzibar")
# Tables that only a failure, a replay or a running curator fills; other tests erase their rows.
NOT_FILLED = {
    "answer_sources", "cleared_lanes", "conflict_members", "curator_runs", "curator_steps",
    "failed_runs", "seals", "shadows", "webhook_deliveries",
}  # fmt: skip


def test_every_table_is_listed() -> None:
    assert set(COVERED) == set(metadata.tables), "Decide what covers it, and say so on the page."
    assert {cell for cells in COVERED.values() for cell in cells.values()} == MEANINGS


async def furnish(engine: Engine) -> tuple[Scope, list[str]]:
    """Give a temporary run rows in the tables. Returns its scope and the ids of these rows."""
    await engine.ledger.private_runs.declare(engine.project.id, RUN, Privacy.TEMPORARY)
    scope = Scope(engine.project.id, user_id=USER, run_id=RUN)
    engine.services = replace(engine.services, summary_after=SummaryAfter(messages=9, tokens=999))
    for sentence in ("I live in Zanzibar.", "I moved to Zanzibar City.", "I own a Zanzibar flag."):
        await engine.send(scope, [Message(Role.USER, sentence)], key=f"Zanzibar {sentence}")
        await engine.drain()
    await engine.services.index.catch_up()
    await engine.turns.catch_up()
    async with engine.ledger.engine.begin() as connection:
        mine = select(events.c.id, events.c.batch_id).where(events.c.lane_id == scope.lane_id)
        rows = (await connection.execute(mine)).all()
        its = select(memories.c.id).where(memories.c.lane_id == scope.lane_id)
        memory_ids = (await connection.scalars(its)).all()
        await _plant(connection, scope, memory_ids[0], rows[0].id)
    await engine.ledger.balance.fold()
    ids = [scope.lane_id, *memory_ids, *(value for row in rows for value in row)]
    return scope, [str(value) for value in ids]


async def _plant(
    connection: AsyncConnection, scope: Scope, memory_id: UUID, event_id: UUID
) -> None:
    """Insert rows that the pipeline writes only now and then."""
    own = {"project_id": scope.project_id, "lane_id": scope.lane_id}
    rated = {"project_id": scope.project_id, "memory_id": memory_id}
    suggested = {"kind": "DELETE", "origin": "event", "targets": [], "content_hash": b""}
    version = {"version": 1, "text": "Zanzibar", "after_seq": 0, "until_seq": 1, "messages": 1}
    paid = {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1}
    later = {"expires_at": func.now() + text("interval '1 day'")}
    key = select(api_keys.c.id).where(api_keys.c.project_id == scope.project_id).limit(1)
    token = {"digest": b"y", "key_id": key.scalar_subquery(), "rights": ["read"]} | later
    run = {"project_id": scope.project_id, "kind": "run", "id": RUN, "name": "Zanzibar"}
    for statement in (
        insert(feedback).values(feedback="POSITIVE", reason="Zanzibar", **rated),
        insert(memory_accesses).values(accesses=1, last_at=func.now(), **rated),
        insert(suggestions).values(id=uuid4(), reason="Zanzibar", **suggested, **own),
        insert(conflicts).values(id=uuid4(), slot="zanzibar", event_id=event_id, **own),
        insert(profiles).values(project_id=scope.project_id, user_id=USER),
        insert(profile_fields).values(
            project_id=scope.project_id, user_id=USER, name="home", value="Zanzibar",
            memory_ids=[memory_id], event_id=event_id,
        ),
        insert(summaries).values(model="", prompt="", **version, **own),
        insert(kept_answers).values(digest=b"x", answer={"x": "Zanzibar"}, **later, **own),
        insert(memory_reads).values(
            at=func.now(), question="Zanzibar?", place=1, score=0.5, **rated
        ),
        insert(saved_views).values(
            project_id=scope.project_id, name="hers", path="/memories", query={"user_id": USER}
        ),
        insert(user_tokens).values(project_id=scope.project_id, user_id=USER, **token),
        insert(own_collections).values(
            name="memories-own", project_id=scope.project_id, user_id=USER, run_id=RUN,
            state="SERVED",
        ),
        insert(owners).values(metadata={"room": "Zanzibar"}, **run),
        insert(event_costs).values(event_id=event_id, **paid),
        insert(usage_daily).values(
            project_id=scope.project_id, user_id=USER, day=func.current_date(), model="m", part=0,
            cost_nano_usd=1, **paid,
        ),
    ):  # fmt: skip
        await connection.execute(statement)


async def counts(engine: Engine, ids: list[str]) -> dict[str, int]:
    """Number of rows with one of the ids, or with a word of the session, by table."""
    pattern, numbers = "|".join([*ids, *WORDS]), {}
    async with engine.ledger.engine.connect() as connection:
        for name in metadata.tables:
            rows = text(f'SELECT count(*) FROM "{name}" t WHERE t::text ~ :pattern')
            if number := await connection.scalar(rows, {"pattern": pattern}):
                numbers[name] = number
    return numbers


async def finish(engine: Engine) -> None:
    """Both passes of all erasures."""
    ledger, index = engine.ledger, engine.services.index
    for _ in range(2):
        for of_sessions in (True, False):
            await erasure.finish(erasures=ledger.erasures, index=index, of_sessions=of_sessions)
        async with ledger.engine.begin() as connection:
            again = update(erasures).where(erasures.c.due_at.is_not(None))
            await connection.execute(again.values(due_at=func.now()))


async def carry_out(engine: Engine, operation: str, scope: Scope) -> None:
    ledger, project_id = engine.ledger, scope.project_id
    match operation:
        case "erasure":
            await ledger.erasures.erase(project_id, OwnerKey("user", USER))
        case "end":
            async with ledger.engine.begin() as connection:
                await connection.execute(update(private_runs).values(expires_at=func.now()))
            assert await erasure.SessionEnds(ledger.private_runs, ledger.erasures).end_next()
        case _:
            tree = parse({"user_id": USER, "run_id": RUN})
            await ledger.clearing.clear(project_id, DeleteRequest(EventType.DELETE_ALL, tree, {}))
    await finish(engine)


@pytest.mark.parametrize("operation", ["erasure", "end", "delete_all"])
async def test_the_page_says_what_an_operation_does(engine: Engine, operation: str) -> None:
    scope, ids = await furnish(engine)
    before = await counts(engine, ids)
    of_owners = {name for name, cells in COVERED.items() if cells["erasure"] != "–"}
    assert set(before) & of_owners >= of_owners - NOT_FILLED - {"book_entries", "rebuilt"}
    await carry_out(engine, operation, scope)
    after = await counts(engine, ids)
    for name in set(before) & of_owners:
        cell = COVERED[name][operation]
        if cell == "deleted":
            assert name not in after, name
        elif cell in ("kept", "hidden"):
            assert after.get(name, 0) >= before[name], name
    if operation != "delete_all":
        words = WORDS[1:] if operation == "end" else WORDS
        assert await raw_look(engine.ledger, words) == {}
