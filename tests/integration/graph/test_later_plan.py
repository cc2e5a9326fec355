"""Reads of the statements said later, in a scope of 100,000 memories that all name the person."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest

from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.graph.store import MOST_LATER, MOST_NAMING
from pipeline.stores import Ledger
from tests.support.explained import explaining

COUNT = 100_000
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FILL = """
    INSERT INTO memories (id, event_id, project_id, lane_id, user_id, text, text_hash, terms,
        attributed_to, embedding, embedder, projected_version, said_at, valid_from, created_at,
        updated_at)
    SELECT gen_random_uuid(), gen_random_uuid(), $1, $2, 'maya',
        'Edda left club ' || n, decode(md5('t' || n), 'hex'),
        ARRAY['edda', 'left', CASE WHEN n % ($3 / $4) = 0 THEN 'blue' ELSE 'red' END, 'club',
            n::text],
        'user', '', 'fake/hash', 1, at, at, at, at
    FROM generate_series(1, $3) n,
        LATERAL (SELECT now() - n * interval '1 s' AS at) t
"""


@pytest.mark.timeout(300)
async def test_statements_said_later_are_read_by_their_words_alone(module_ledger: Ledger) -> None:
    scope = Scope(ProjectId(uuid4()), user_id="maya")
    engine, graph = module_ledger.engine, module_ledger.graph
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET session_replication_role = replica; SET work_mem = '128MB'")
        await connection.execute(FILL, scope.project_id, scope.lane_id, COUNT, MOST_NAMING)
        await connection.execute("ANALYZE memories")
    finally:
        await connection.close()
    with explaining(engine) as recorder:
        await engine.dispose()
        for name, count, naming in (
            (f"club {COUNT // 2}", 1, 1),
            ("blue club", MOST_LATER, MOST_NAMING),
            ("chess", 0, 0),
        ):
            rows = await graph.said_later(scope, [("Edda", name)], since=LONG_AGO)
            plans = await recorder.taken()
            [plan] = [plan for plan in plans if "lookup.wanted" in plan.words]
            assert len(rows) == count
            # The keys of the lookup, and what the index names.
            assert plan.read <= max(naming, 5)
    await engine.dispose()
