"""Plans made while the tables were empty, and the same statements beside 15,000 memories.

A connection keeps the plan of a statement until its tables are analyzed. The sweeper analyzes
tables that have grown, so that no plan of an empty table stays.
"""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest

from pipeline.ledger.statistics import FEW, TIMES
from pipeline.stores import Ledger
from tests.bench.growth import fill
from tests.integration.api.test_across import furnish
from tests.integration.ledger.test_plans import VECTOR_BYTES, Filled, jobs, reads, url_of, writes
from tests.support.api_service import ADD, SEARCH, serving
from tests.support.explained import explaining

LANES = 3_000
# The rows of one table: at this size a plan may hash a table rather than look up 100 of its rows.
MOST_READ = 16_000
# An add of the search's scope, and how many.
MESSAGES, ADDS = 10, 40
TABLES = """
    SELECT oid::regclass::text FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@pytest.mark.timeout(600)
async def test_plans_of_empty_tables_are_replaced(module_ledger: Ledger) -> None:
    url = url_of(module_ledger)
    await without_autovacuum(url)
    engines = {module_ledger.engine, module_ledger.pools.adds}
    async with serving(module_ledger, sync_wait_s=0.01) as service:
        with explaining(*engines) as recorder:
            for engine in engines:
                await engine.dispose()
            small = await furnish(service, "early", "I live in Lima.")
            large = await furnish(service, "large", "I live in Oslo.")
            plans_made = Filled(service, recorder, large, small)
            await reads(plans_made)
            await writes(plans_made)
            project_id = UUID(large.holding.project_id)
            await fill.fill(url, project_id, lanes=LANES, vector_bytes=VECTOR_BYTES, analyze=False)
            assert "public.memories" in await module_ledger.statistics.analyze_grown()
            await recorder.taken()
            small = await furnish(service, "late", "I live in Lima.")
            executed = Filled(service, recorder, large, small, usual_most=MOST_READ)
            await reads(executed)
            await writes(executed)
            await jobs(executed)
        for engine in engines:
            await engine.dispose()
    assert not executed.faults, "\n\n".join(executed.faults.values())


async def test_a_search_looks_up_its_passages_with_plans_of_empty_tables(ledger: Ledger) -> None:
    """As in the first minutes of an installation: most texts have the query's words."""
    await without_autovacuum(url_of(ledger))
    async with serving(ledger) as service:
        with explaining(ledger.engine) as recorder:
            await ledger.engine.dispose()
            tenant = await furnish(service, "early", "I live in Lima.")
            executed = Filled(service, recorder, tenant, tenant)
            for searched in (False, True):
                if searched:
                    for number in range(ADDS):
                        added = await service.client.post(
                            ADD, json=dishes(number), headers=tenant.asking()
                        )
                        assert added.status_code == 200
                    await service.engine.drain()
                    await service.engine.turns.catch_up(stale_for_s=0, limit=ADDS * MESSAGES)
                await recorder.taken()
                executed.faults.clear()
                for keyword in (False, True):
                    query = {"query": "Which dish was number 7?", "top_k": 100}
                    filters = {"filters": {"user_id": "maya"}, "include": ["facts", "turns"]}
                    words = {"keyword_search": keyword}
                    await executed.send(tenant, "POST", SEARCH, json=query | filters | words)
        await ledger.engine.dispose()
    assert not executed.faults, "\n\n".join(executed.faults.values())


def dishes(number: int) -> dict[str, object]:
    """An add of MESSAGES messages, one of them with a fact."""
    texts = [f"Dish {number}-{n} was number {n}." for n in range(MESSAGES - 1)]
    texts.append(f"I like dish number {number}.")
    return {"user_id": "maya", "messages": [{"role": "user", "content": text} for text in texts]}


async def test_a_table_is_analyzed_again_once_it_is_several_times_as_large(ledger: Ledger) -> None:
    url = url_of(ledger)
    await execute(url, "CREATE TABLE grown (id integer) WITH (autovacuum_enabled = off)")
    growth = (TIMES - 1) * (FEW + 1)
    for rows, is_analyzed in ((FEW, False), (1, True), (growth, False), (1, True), (1, False)):
        await execute(url, f"INSERT INTO grown SELECT generate_series(1, {rows})")
        analyzed = await ledger.statistics.analyze_grown()
        assert ("public.grown" in analyzed) == is_analyzed, rows


async def test_changes_of_rows_are_no_growth(ledger: Ledger) -> None:
    url = url_of(ledger)
    rows = f"SELECT generate_series(1, {2 * FEW}) AS id"
    await execute(url, f"CREATE TABLE grown WITH (autovacuum_enabled = off) AS {rows}")
    assert "public.grown" in await ledger.statistics.analyze_grown()
    for _ in range(3):
        await execute(url, "UPDATE grown SET id = id")
    assert "public.grown" not in await ledger.statistics.analyze_grown()


async def test_a_table_may_have_any_name(ledger: Ledger) -> None:
    await execute(
        url_of(ledger),
        f"""CREATE TABLE "of :another %s" WITH (autovacuum_enabled = off)
            AS SELECT generate_series(1, {2 * FEW})""",
    )
    assert 'public."of :another %s"' in await ledger.statistics.analyze_grown()


async def execute(url: str, statement: str) -> None:
    """Execute one statement, whose numbers of rows are counted when this returns."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"{statement}; SELECT pg_stat_force_next_flush()")
    finally:
        await connection.close()


async def without_autovacuum(url: str) -> None:
    """Switch autovacuum off, which would analyze the tables."""
    connection = await asyncpg.connect(url)
    try:
        for (table,) in await connection.fetch(TABLES):
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    finally:
        await connection.close()
