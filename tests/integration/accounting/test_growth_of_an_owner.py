"""Growth of one owner: its superseded memories and its temporary runs cost its reads nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from sqlalchemy import text

from pipeline.domain.events import FailureCode
from pipeline.domain.filters import EventFilter, parse
from pipeline.domain.scope import Scope
from pipeline.events import owners, store
from pipeline.search.where import Where
from pipeline.stores import Ledger
from tests.support.engine import Engine
from tests.support.explained import Recorder, explaining

MANY, FEW = 3_000, 5
OWNER = {"user_id": "maya", "agent_id": "helper", "app_id": "web"}
# Rows that one node of a plan may read for a page of FEW memories.
MOST = 100

LANE = """
    INSERT INTO lanes (id, project_id, user_id, agent_id, app_id, run_id,
        accepted_seq, settled_seq, state)
    SELECT md5(:prefix || n)::uuid, :project_id, 'maya', 'helper', 'web',
        CASE WHEN :prefix = 'visit' THEN 'visit' || n END, 0, 0, 'IDLE'
    FROM generate_series(1, :many) n"""
MEMORY = """
    INSERT INTO memories (id, project_id, lane_id, user_id, agent_id, app_id, run_id, text,
        text_hash, terms, state, attributed_to, embedding, embedder, said_at, valid_from,
        created_at)
    SELECT gen_random_uuid(), project_id, id, user_id, agent_id, app_id, run_id, 'User likes tea',
        decode(md5(n::text), 'hex'), '{user,like,tea}', :state, 'user', '', 'fake/hash', now(),
        now(), now() - n * interval '1 second'
    FROM lanes, generate_series(1, :many) n
    WHERE project_id = :project_id AND (run_id IS NOT NULL) = :in_runs"""
OTHERS = """
    INSERT INTO memories (id, project_id, lane_id, user_id, agent_id, app_id, text, text_hash,
        terms, attributed_to, embedding, embedder, said_at, valid_from)
    SELECT gen_random_uuid(), :project_id, gen_random_uuid(), n || name, n || name, n || name,
        'User likes tea', decode(md5(n::text), 'hex'), '{user,like,tea}', 'user', '',
        'fake/hash', now(), now()
    FROM generate_series(1, :many) n, (VALUES ('a'), ('b')) AS other (name)"""
EVENTS = """
    INSERT INTO events (id, project_id, lane_id, seq, event_type, status, failure_code, options,
        tokens, created_at, completed_at)
    SELECT gen_random_uuid(), project_id, id, :first + n, :kind, :status, :code, '{}', 1,
        now() - (n + random() * 100) * interval '1 second',
        CASE WHEN :status <> 'PENDING' THEN now() END
    FROM lanes, generate_series(1, :many) n
    WHERE project_id = :project_id AND coalesce(run_id, user_id) LIKE :lanes"""
BUSY = """
    UPDATE lanes SET state = 'QUEUED', due_at = now(), accepted_seq = 9000, settled_seq = :settled
    WHERE project_id = :project_id AND user_id = :user"""
OTHER = """
    INSERT INTO lanes (id, project_id, user_id, accepted_seq, settled_seq, state)
    SELECT gen_random_uuid(), :project_id, 'other' || n, 0, 0, 'IDLE'
    FROM generate_series(1, :many) n"""
RARE = {
    "failed": EventFilter(OWNER, statuses=["FAILED", "CANCELLED"]),
    "open": EventFilter(OWNER, statuses=["PENDING", "RUNNING"]),
    "failed or open": EventFilter(OWNER, statuses=["FAILED", "CANCELLED", "PENDING"]),
    "code": EventFilter(OWNER, code=FailureCode.DEADLINE),
    "kind": EventFilter(OWNER, kinds=["EXPORT"]),
    "open kind": EventFilter(OWNER, kinds=["EXPORT"], statuses=["PENDING"]),
}
RUNS = """
    INSERT INTO private_runs (project_id, run_id, digest, privacy, erasure_id, expires_at)
    SELECT :project_id, 'visit' || n, private_run_digest(:project_id, 'visit' || n), 'temporary',
        gen_random_uuid(), now() + interval '1 day'
    FROM generate_series(1, :many) n"""


async def execute(engine: Engine, words: str, **values: object) -> None:
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text(words), {"project_id": engine.project.id} | values)


async def remember(engine: Engine, state: str, many: int, *, in_runs: bool = False) -> None:
    await execute(engine, MEMORY, state=state, many=many, in_runs=in_runs)


@pytest.fixture
async def owner(engine: Engine) -> Engine:
    """A scope with an owner of each kind and FEW memories, beside MANY of other owners."""
    await execute(engine, OTHERS, many=MANY)
    await execute(engine, LANE, prefix="scope", many=1)
    await remember(engine, "ACTIVE", FEW)
    return engine


@pytest.fixture
async def recorder(engine: Engine) -> AsyncIterator[Recorder]:
    with explaining(engine.ledger.engine) as recorder:
        yield recorder
    await engine.ledger.engine.dispose()


async def read_by(
    engine: Engine, recorder: Recorder, run: Callable[[], Awaitable[object]], most: int = MOST
) -> str:
    """The plan node of a read that reads more than `most` rows, in words; empty if none does."""
    await execute(engine, "ANALYZE")
    await engine.ledger.engine.dispose()
    await run()
    await recorder.taken()  # also the driver's own statements on a new connection
    await run()
    plans = [plan for plan in await recorder.taken() if plan.read > most]
    return "\n".join(f"{plan.read:.0f} by {plan.node}: {plan.words[:200]}" for plan in plans)


def reads(engine: Engine, kind: str) -> dict[str, Callable[[], Awaitable[object]]]:
    """The reads of the memories and events of one owner."""
    ledger: Ledger = engine.ledger
    project_id, ids = engine.project.id, {kind: OWNER[kind]}
    where = Where.of(project_id, parse(ids), facts=True, turns=False, expired=False)
    events = EventFilter(scope_ids=ids)
    return {
        "list": lambda: ledger.memories.page(
            project_id, parse(ids), expired=False, limit=50, offset=0
        ),
        "words": lambda: ledger.passages.by_words(where, ["tea"], limit=200),
        "standing": lambda: ledger.events.lane_states(project_id, ids, embedder="fake/hash"),
        "events": lambda: ledger.events.page(project_id, events, limit=50, offset=0),
    }


@pytest.mark.parametrize("kind", OWNER)
@pytest.mark.parametrize("read", ["list", "words"])
async def test_superseded_memories_cost_the_reads_of_their_owner_nothing(
    owner: Engine, recorder: Recorder, kind: str, read: str
) -> None:
    await remember(owner, "RETIRED", MANY)
    assert await read_by(owner, recorder, reads(owner, kind)[read]) == ""


@pytest.mark.parametrize("kind", OWNER)
@pytest.mark.parametrize("read", ["list", "words", "standing", "events"])
async def test_temporary_runs_cost_other_reads_of_their_owner_nothing(
    owner: Engine, recorder: Recorder, kind: str, read: str
) -> None:
    await execute(owner, RUNS, many=MANY)
    await execute(owner, LANE, prefix="visit", many=MANY)
    await remember(owner, "ACTIVE", 1, in_runs=True)
    assert await read_by(owner, recorder, reads(owner, kind)[read]) == ""


async def test_a_read_that_names_a_run_finds_it_among_many(
    owner: Engine, recorder: Recorder
) -> None:
    await execute(owner, RUNS, many=MANY)
    await execute(owner, LANE, prefix="visit", many=MANY)
    await remember(owner, "ACTIVE", 1, in_runs=True)
    tree = parse({"user_id": "maya", "run_id": "visit7"})
    scope = Scope(owner.project.id)

    async def run() -> None:
        rows, count = await owner.ledger.memories.page(
            scope.project_id, tree, expired=False, limit=50, offset=0
        )
        assert (len(rows), count) == (1, 1)

    assert await read_by(owner, recorder, run) == ""


async def others(engine: Engine) -> None:
    """Give other owners MANY failed, exported and open events."""
    await execute(engine, OTHER, many=3)
    for number, (kind, status, code) in enumerate(
        (("ADD", "FAILED", "DEADLINE"), ("EXPORT", "SUCCEEDED", None), ("ADD", "PENDING", None)),
        start=1,
    ):
        values = {"kind": kind, "status": status, "code": code, "lanes": f"other{number}"}
        await execute(engine, EVENTS, first=0, many=MANY, **values)
    await execute(engine, BUSY, user="other3", settled=0)


@pytest.mark.parametrize("name", RARE)
async def test_the_rare_events_of_a_scope_are_read_without_its_others(
    owner: Engine, recorder: Recorder, name: str
) -> None:
    await others(owner)
    usual = {"kind": "ADD", "status": "SUCCEEDED", "code": None, "lanes": "maya"}
    await execute(owner, EVENTS, first=0, many=MANY, **usual)
    own = (("ADD", "FAILED", "DEADLINE"), ("EXPORT", "FAILED", None), ("EXPORT", "PENDING", None))
    for number, (kind, status, code) in enumerate(own):
        values = {"kind": kind, "status": status, "code": code, "lanes": "maya"}
        await execute(owner, EVENTS, first=MANY + number * FEW, many=FEW, **values)
    await execute(owner, BUSY, user="maya", settled=MANY)

    async def run() -> None:
        page = await owner.ledger.events.page(owner.project.id, RARE[name], limit=50, offset=0)
        assert page.count == len(page.rows) >= FEW
        assert not page.bounded
        full = await owner.ledger.events.page(owner.project.id, RARE[name], limit=FEW, offset=0)
        assert (len(full.rows), full.count, full.bounded) == (FEW, page.count, [])

    assert await read_by(owner, recorder, run) == ""


@pytest.mark.parametrize("name", RARE)
async def test_the_rare_events_of_very_many_scopes_are_bounded_and_the_page_says_so(
    owner: Engine, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for bound in ("COUNTED", "MOST_EVENTS", "FEW_LANES", "MOST_LANES"):
        monkeypatch.setattr(owners, bound, 50)
    monkeypatch.setattr(store, "COUNTED", 50)
    await others(owner)
    await execute(owner, LANE, prefix="more", many=MANY)
    usual = {"kind": "ADD", "status": "SUCCEEDED", "code": None, "lanes": "maya"}
    await execute(owner, EVENTS, first=0, many=1, **usual)
    if name in ("open", "open kind"):  # all of the scopes are busy, with nothing open
        await execute(owner, BUSY, user="maya", settled=9_000)

    async def run() -> None:
        page = await owner.ledger.events.page(owner.project.id, RARE[name], limit=10, offset=0)
        assert (page.rows, page.count) == ([], 0)
        assert page.bounded == ["count", "results"]

    assert await read_by(owner, recorder, run, 200) == ""
