"""Growth of the ledger: queries and background jobs read only the rows they return."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.accounting.balance import Balance
from pipeline.curator.store import RunLimits
from pipeline.domain import filters
from pipeline.domain.errors import NotFound
from pipeline.domain.events import EventType, FailureCode, StageName
from pipeline.domain.filters import ANY, EventFilter
from pipeline.domain.graph.values import GraphStatus
from pipeline.domain.scope import Scope
from pipeline.domain.usage import Usage
from pipeline.erasure.store import OwnerKey
from pipeline.lanes.load import LoadView
from pipeline.ledger import counting
from pipeline.ledger.engine import connect
from pipeline.ledger.tables import events, lanes, memories
from pipeline.memories.delete_by_filter import DeleteByFilter, DeleteRequest
from pipeline.memories.sql import statement
from pipeline.stores import Ledger, Pools
from pipeline.turns.vectors import TurnVectors
from tests.support.engine import Engine, lanes_on
from tests.support.plans import recorded, rows_read, rows_read_so_far

# Rows of each kind, in a project other than the queried one.
MANY = 3_000
FEW = 500
# Rows with which the generic plan of a page differs from one for few rows.
VERY_MANY = 20_000

FILL = (
    """INSERT INTO lanes (
        id, project_id, user_id, agent_id, accepted_seq, settled_seq, state, due_at
    )
    SELECT gen_random_uuid(), :project_id, 'u' || n, CASE WHEN n % 100 = 0 THEN 'rare' END, 1, 0,
           'WAITING', now() + interval '1 hour'
    FROM generate_series(1, :many) n""",
    """INSERT INTO events (id, project_id, lane_id, seq, options, tokens, created_at)
    SELECT gen_random_uuid(), project_id, id, 1, '{}', 1, now() - interval '1 hour'
    FROM lanes WHERE project_id = :project_id""",
    """INSERT INTO messages (lane_id, seq, ordinal, role, content, said_at)
    SELECT lane_id, 1, 0, 'user', 'x', created_at FROM events WHERE project_id = :project_id""",
    """INSERT INTO turn_vectors (event_id, ordinal, lane_id, embedding, embedder, accepted_at)
    SELECT id, 0, lane_id, '', 'local/hash', created_at FROM events
    WHERE project_id = :project_id""",
    """INSERT INTO memories (id, project_id, lane_id, user_id, agent_id, text, text_hash,
        attributed_to, embedding, embedder, valid_from)
    SELECT gen_random_uuid(), project_id, id, user_id, agent_id, 'x', '', 'user', '', 'fake/hash',
           now()
    FROM lanes WHERE project_id = :project_id""",
    """INSERT INTO memory_history (memory_id, version, project_id, event, valid_from)
    SELECT id, 1, project_id, 'ADD', now() FROM memories WHERE project_id = :project_id""",
)


async def fill(
    engine: AsyncEngine, project_id: UUID, many: int = MANY, *, then: str = "ANALYZE"
) -> None:
    """Insert this many waiting scopes, each with an event, a turn, a memory and a history row.

    `then`: the statement after them.
    """
    async with engine.begin() as connection:
        for words in FILL:
            await connection.execute(text(words), {"project_id": project_id, "many": many})
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text(then))


@pytest.fixture
async def crowded(engine: Engine) -> Engine:
    """A project with five events beside one with very many rows."""
    await fill(engine.ledger.engine, uuid4())
    for n in range(5):
        await engine.add(f"I like dish {n}.")
    await engine.drain()
    return engine


@pytest.fixture
async def single(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine of one connection, whose reads `rows_read_so_far` counts."""
    single = connect(database_url, pool_size=1)
    yield single
    await single.dispose()


async def test_the_feed_of_changes_reads_the_page_and_no_other_project(crowded: Engine) -> None:
    ledger = crowded.ledger
    with recorded(ledger.engine) as statements:
        listed = await ledger.histories.feed(crowded.project.id, limit=2, offset=0)
    assert (len(listed.rows), listed.count) == (2, 5)
    assert await rows_read(ledger.engine, statements) < 20


async def test_a_page_of_a_long_feed_reads_the_page(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    with recorded(ledger.engine) as statements:
        listed = await ledger.histories.feed(engine.project.id, limit=10, offset=0)
    assert len(listed.rows) == 10
    # All statements except the count.
    pages = [statement for statement in statements if "count(" not in statement[0]]
    assert await rows_read(ledger.engine, pages) < 50


async def test_a_change_beside_very_many_of_others_costs_itself(engine: Engine) -> None:
    """The generic plan does not know the size of a page: it must not read whole tables for it."""
    ledger = engine.ledger
    await fill(ledger.engine, uuid4(), VERY_MANY)
    await engine.add("I like tea.")
    await engine.drain()
    await fill(ledger.engine, uuid4(), 1)
    with recorded(ledger.engine) as statements:
        listed = await ledger.histories.feed(engine.project.id, limit=50, offset=0)
        await ledger.histories.of(engine.project.id, listed.rows[0].memory_id)
    assert (len(listed.rows), listed.count) == (1, 1)
    assert await rows_read(ledger.engine, statements) < 20


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(code=FailureCode.POISON_CRASH),
        EventFilter(graph_status=GraphStatus.FAILED),
        EventFilter(graph_status=GraphStatus.PARTIAL),
    ],
)
async def test_events_of_a_code_or_a_graph_status_are_found_by_themselves(
    engine: Engine, wanted: EventFilter
) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id, VERY_MANY)
    with recorded(ledger.engine) as statements:
        page = await ledger.events.page(engine.project.id, wanted, limit=50, offset=0)
    assert (page.rows, page.count) == ([], 0)
    assert await rows_read(ledger.engine, statements) < 20


async def test_a_count_of_events_joins_no_lanes(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id, FEW)
    with recorded(ledger.engine) as statements:
        page = await ledger.events.page(engine.project.id, EventFilter(), limit=5, offset=0)
    assert page.count == FEW
    counts = [row for row in statements if row[0].startswith("SELECT count")]
    assert counts
    assert not [words for words, _ in counts if "JOIN lanes" in words]
    assert await rows_read(ledger.engine, counts) <= FEW


async def test_a_schedule_without_a_due_scope_reads_none(engine: Engine) -> None:
    ledger, project_id = engine.ledger, engine.project.id
    await fill(ledger.engine, project_id, VERY_MANY)
    limits = RunLimits(suggestions=10, tokens=1_000)
    with recorded(ledger.engine) as statements:
        assert await ledger.curator.schedule(limits, limit=20) == 0
    await ledger.projects.change(project_id, {"curator": {"every_hours": 1, "idle_minutes": 1}}, {})
    async with ledger.engine.begin() as connection:
        later = func.now() + text("interval '1 hour'")
        await connection.execute(update(lanes).values(next_curation_at=later))
    with recorded(ledger.engine) as again:
        assert await ledger.curator.schedule(limits, limit=20) == 0
    assert await rows_read(ledger.engine, [*statements, *again]) < 20


async def test_the_names_of_relations_cost_a_look_up_each(
    engine: Engine, single: AsyncEngine
) -> None:
    """Each event reads them: not the relations of every scope. One scope's own name is left out."""
    ledger, project_id = (
        Ledger(Pools(single, single, single, single), lanes_on(single)),
        engine.project.id,
    )
    await fill(ledger.engine, project_id, VERY_MANY, then="ANALYZE lanes")
    relate = """INSERT INTO relations (id, project_id, lane_id, source_id, relation,
        destination_id, event_id, valid_from)
    SELECT gen_random_uuid(), project_id, id, gen_random_uuid(), 'likes', gen_random_uuid(),
           gen_random_uuid(), now()
    FROM lanes"""
    # Names that are new since the last ANALYZE.
    rename = """UPDATE relations
    SET relation = CASE l.user_id WHEN 'u1' THEN 'adores' ELSE 'owns' END
    FROM lanes l WHERE l.id = relations.lane_id AND l.user_id IN ('u1', 'u9', 'u99')"""
    async with ledger.engine.begin() as connection:
        await connection.execute(text("SET LOCAL session_replication_role = replica"))
        await connection.execute(text(relate))
    async with ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as vacuum:
        await vacuum.execute(text("VACUUM ANALYZE relations"))
        await vacuum.execute(text(rename))
    before = await rows_read_so_far(single)
    assert await ledger.graph.vocabulary(project_id) == ["likes", "owns"]
    assert await rows_read_so_far(single) - before < 500


async def test_the_erasure_of_a_user_reads_no_scope_of_other_users(
    engine: Engine, single: AsyncEngine
) -> None:
    """Its agents, apps and runs end with it, unless another scope has them: one look-up each."""
    ledger, project_id = (
        Ledger(Pools(single, single, single, single), lanes_on(single)),
        engine.project.id,
    )
    await fill(ledger.engine, project_id, VERY_MANY)
    shared = """UPDATE lanes SET agent_id = 'bot', app_id = CASE WHEN n % 10 = 0 THEN 'web' END
        FROM generate_series(3, :many, 3) n WHERE user_id = 'u' || n"""
    async with ledger.engine.begin() as connection:
        await connection.execute(text(shared), {"many": VERY_MANY})
    async with ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as vacuum:
        await vacuum.execute(text("VACUUM ANALYZE lanes"))
    before = await rows_read_so_far(single)
    await ledger.erasures.erase(project_id, OwnerKey("user", "u30"))
    assert await rows_read_so_far(single) - before < 500


async def test_a_list_of_an_agent_counts_a_bounded_number(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.memories.store.COUNTED", 10)
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id, VERY_MANY)
    for tree in (filters.Test("agent_id", "eq", "rare"), filters.Test("user_id", "eq", ANY)):
        page, count = await ledger.memories.page(
            engine.project.id, tree, expired=True, limit=5, offset=0
        )
        assert (len(page), count) == (5, 15)


async def test_one_owner_is_found_by_its_id(engine: Engine) -> None:
    ledger, project_id = engine.ledger, engine.project.id
    await fill(ledger.engine, project_id, VERY_MANY)
    await ledger.balance.fold()
    async with ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as vacuum:
        await vacuum.execute(text("VACUUM ANALYZE books, book_entries"))
    with recorded(ledger.engine) as statements:
        for kind in ("user", None):
            rows = await ledger.owners.with_id(project_id, "u7", kind=kind)
            assert [row.id for row in rows] == ["u7"]
        assert await ledger.owners.page(project_id, kind="app", limit=10) == []
    assert await rows_read(ledger.engine, statements) < 50


async def test_a_scope_with_many_superseded_memories_reads_the_current_ones(
    engine: Engine,
) -> None:
    ledger, scope = engine.ledger, engine.scope()
    await engine.add("I like tea.")
    await engine.drain()
    retired = """INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, state,
        attributed_to, embedding, embedder, valid_from)
    SELECT gen_random_uuid(), :project_id, :lane_id, 'maya', 'x', '', 'RETIRED', 'user', '',
           'fake/hash', now()
    FROM generate_series(1, :many)"""
    async with ledger.engine.begin() as connection:
        values = {"project_id": scope.project_id, "lane_id": scope.lane_id, "many": MANY}
        await connection.execute(text(retired), values)
        await connection.execute(text("ANALYZE memories"))
    values = {"lane_id": scope.lane_id, "embedder": "fake/hash", "limit": 300}
    with recorded(ledger.engine) as statements:
        async with ledger.engine.connect() as connection:
            rows = (await connection.execute(statement("comparable"), values)).all()
        assert await ledger.memories.size(scope) == len(rows) == 1
    assert await rows_read(ledger.engine, statements) < 20


async def test_a_count_stops_far_behind_the_page(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id, FEW)
    rows = select(events.c.id).where(events.c.project_id == engine.project.id)
    assert await counting.count_near(ledger.engine, rows, limit=10, offset=0) == FEW
    near = await counting.count_near(ledger.engine, rows, limit=10, offset=20, beyond=50)
    assert near == 80


async def test_figures_read_no_events(crowded: Engine) -> None:
    ledger = crowded.ledger
    await ledger.balance.fold()
    with recorded(ledger.engine) as statements:
        mine = await ledger.balance.totals(crowded.project.id)
        every = await ledger.balance.totals()
    assert (mine.succeeded, every.pending) == (5, MANY)
    assert 3_500 < every.oldest_in_flight_s < 4_000
    assert await rows_read(ledger.engine, statements) < 100


@pytest.mark.parametrize("folded", [False, True])
async def test_owners_are_dated_by_their_memories(engine: Engine, folded: bool) -> None:
    ledger, project_id = engine.ledger, engine.project.id
    await engine.add("I live in Berlin. I like jazz.")
    await engine.drain()
    before = (await ledger.owners.page(project_id, limit=1))[0]
    if folded:
        await ledger.balance.fold()
    await engine.add("I moved to Oslo.")
    await engine.drain()
    if folded:
        await ledger.balance.fold()
    [row] = await ledger.owners.with_id(project_id, before.id, kind="user")
    assert (row.memories, row.created_at) == (2, before.created_at)
    assert row.updated_at > before.updated_at
    dates = select(func.min(memories.c.created_at), func.max(memories.c.updated_at))
    async with ledger.engine.connect() as connection:
        assert (row.created_at, row.updated_at) == tuple((await connection.execute(dates)).one())


async def test_the_page_of_owners_reads_none_of_their_memories(engine: Engine) -> None:
    ledger, project_id = engine.ledger, engine.project.id
    await fill(ledger.engine, project_id, FEW)
    async with ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(user_id="maya"))
    await ledger.balance.fold()
    async with ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as vacuum:
        await vacuum.execute(text("VACUUM books, book_entries"))
    with recorded(ledger.engine) as statements:
        owners = await ledger.owners.page(project_id, limit=10)
    assert {(row.id, row.memories) for row in owners} == {("maya", FEW), ("rare", 5)}
    assert await rows_read(ledger.engine, statements) < 20


async def test_the_few_failed_events_of_many_are_found_by_themselves(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    first = select(events.c.id).where(events.c.project_id == engine.project.id).limit(1)
    async with ledger.engine.begin() as connection:
        values = {"status": "FAILED", "completed_at": func.now()}
        await connection.execute(
            update(events).where(events.c.id.in_(first.scalar_subquery())).values(values)
        )
    failed = EventFilter(statuses=["FAILED"])
    with recorded(ledger.engine) as statements:
        page = await ledger.events.page(engine.project.id, failed, limit=10, offset=0)
    assert (len(page.rows), page.count) == (1, 1)
    assert await rows_read(ledger.engine, statements) < 50


async def test_a_dry_run_of_a_delete_reads_no_event_of_other_scopes(
    engine: Engine, single: AsyncEngine
) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    await engine.add("I like tea.")
    await engine.drain()
    await engine.add("I like jam.")
    request = DeleteRequest(EventType.DELETE_ALL, filters.parse({"user_id": "maya"}), {})
    clearing = DeleteByFilter(single, grace=timedelta(seconds=30))
    before = await rows_read_so_far(single)
    result = await clearing.rehearse(engine.project.id, request)
    assert (len(result.lines), result.cancelled) == (1, 1)
    assert await rows_read_so_far(single) - before < MANY / 10


async def test_an_export_that_is_not_there_costs_no_pass_over_the_events(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    with recorded(ledger.engine) as statements, pytest.raises(NotFound):
        await ledger.answers.export(engine.project.id, event_id=None, filters={"user_id": "x"})
    assert await rows_read(ledger.engine, statements) < 50


@pytest.mark.parametrize("of", [lanes, memories], ids=["lanes", "memories"])
async def test_an_agents_rows_are_found_among_those_of_many_users(
    engine: Engine, of: Table
) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    query = select(of.c.id).where(of.c.project_id == engine.project.id, of.c.agent_id == "rare")
    with recorded(ledger.engine) as statements:
        async with ledger.engine.connect() as connection:
            rows = (await connection.scalars(query)).all()
    assert len(rows) == MANY // 100
    assert await rows_read(ledger.engine, statements) < 2 * len(rows)


async def test_only_the_oldest_pending_turns_are_read(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id)
    with recorded(ledger.engine) as statements:
        turns = TurnVectors(ledger.engine)
        assert len(await turns.unprojected(stale_for_s=60, limit=10)) == 10
        assert await turns.foreign("memlane", "local/hash", limit=10) == []
        assert await ledger.memory_vectors.foreign("memlane", "fake/hash", limit=10) == []
    assert await rows_read(ledger.engine, statements) < 50


async def test_plans_of_an_empty_ledger_serve_a_full_one(database_url: str) -> None:
    """A sweeper keeps the plans of its first seconds; see plan_cache_mode in `ledger.engine`."""
    single = connect(database_url, pool_size=1)
    turns, books = TurnVectors(single), Balance(single)

    async def jobs() -> None:
        await books.fold()
        await turns.unprojected(stale_for_s=60, limit=10)
        await turns.foreign("live", "local/hash", limit=10)

    async with single.begin() as connection:
        row = "INSERT INTO vector_indexes (name, embedder, state) VALUES ('live', '', 'LIVE')"
        await connection.execute(text(row))
    await fill(single, uuid4(), 1, then="SELECT")
    await jobs()
    async with single.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("VACUUM ANALYZE"))  # tells the planner that it is empty
    await jobs()
    await fill(single, uuid4(), FEW, then="SELECT")
    before = await rows_read_so_far(single)
    await jobs()
    # A join that reads one table for each row of the other reads FEW * FEW rows.
    assert FEW < await rows_read_so_far(single) - before < 50 * FEW
    await single.dispose()


async def test_a_lane_is_found_by_its_id_among_many_busy_ones(
    engine: Engine, database_url: str
) -> None:
    single = connect(database_url, pool_size=1)
    idle = "UPDATE lanes SET state = 'IDLE', due_at = NULL"
    busy = "UPDATE lanes SET state = 'WAITING', due_at = now() + interval '1 hour'"
    await fill(engine.ledger.engine, uuid4(), FEW)
    async with single.begin() as connection:
        await connection.execute(text(idle))
    async with single.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("VACUUM ANALYZE lanes"))

    async def stage(user_id: str) -> None:
        await engine.add("I like tea.", user_id=user_id)
        owned = lanes_on(single)
        claimed = await owned.claim(engine.hints.waiting.pop(), uuid4())
        assert claimed is not None
        await owned.finish(claimed[0], StageName.RETRIEVE, output={}, usage=Usage(), ms=1.0)

    await stage("maya")
    async with single.begin() as connection:
        await connection.execute(text(busy))
    before = await rows_read_so_far(single)
    await stage("leo")
    assert await rows_read_so_far(single) - before < FEW
    await single.dispose()


async def test_parked_events_are_not_read_one_by_one(engine: Engine) -> None:
    ledger = engine.ledger
    await fill(ledger.engine, engine.project.id, FEW)
    async with ledger.engine.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO events (id, project_id, lane_id, seq, options, tokens, created_at)"
                " SELECT gen_random_uuid(), project_id, lane_id, n, '{}', 1, created_at"
                " FROM events, generate_series(2, 10) n"
            )
        )
        await connection.execute(text("UPDATE lanes SET accepted_seq = 10"))
        await connection.execute(text("ANALYZE"))
    with recorded(ledger.engine) as statements:
        load = await LoadView(ledger.engine).look(scope_events=100)
    assert (load.projects, load.backlogged) == ({engine.project.id: 10 * FEW}, False)
    # Each lane has an index entry of before its update, too; the events are 10 * FEW.
    assert await rows_read(ledger.engine, statements) < 3 * FEW


async def test_a_batch_reads_the_memories_it_may_touch(engine: Engine) -> None:
    ledger, scope = engine.ledger, Scope(engine.project.id, user_id="maya")
    async with ledger.engine.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash,"
                " attributed_to, embedding, embedder, valid_from)"
                " SELECT gen_random_uuid(), :project_id, :lane_id, 'maya', 'x',"
                " decode(md5(n::text), 'hex'), 'user', '', 'fake/hash', now()"
                " FROM generate_series(1, :many) n"
            ),
            {"project_id": scope.project_id, "lane_id": scope.lane_id, "many": MANY},
        )
        await connection.execute(text("ANALYZE memories"))
        ids = (await connection.scalars(select(memories.c.id).limit(3))).all()
        hashes = (await connection.scalars(select(memories.c.text_hash).limit(9))).all()
    values = {"lane_id": scope.lane_id, "ids": list(ids), "hashes": list(hashes)}
    values |= {"event_ids": [], "slots": ["user · residence"]}
    with recorded(ledger.engine) as statements:
        async with ledger.engine.connect() as connection:
            rows = (await connection.execute(statement("affected_memories"), values)).all()
    assert 9 <= len(rows) <= 12
    assert await rows_read(ledger.engine, statements) < 50


async def test_doubted_hints_are_a_share_of_those_sent_before_and_never_a_locked_lane(
    engine: Engine,
) -> None:
    ledger = engine.ledger
    for n in range(5):
        await engine.add("I like tea.", user_id=f"user-{n}")
    back_at = await ledger.now()
    doubt = partial(ledger.due_lanes.doubt_hints, sent_before=back_at, patience_s=60, limit=3)
    lock = select(lanes.c.id).where(lanes.c.user_id == "user-0").with_for_update()
    async with ledger.engine.begin() as other:
        await other.execute(lock)
        assert await doubt() == 3
        assert await doubt() == 1
    assert await doubt() == 1
    assert await engine.sweep() == 5
    # Their hints were published again after the broker was back, so none is in doubt.
    assert await doubt() == 0
