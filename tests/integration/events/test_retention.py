"""Retention: data that is deleted after some time, and data that is never deleted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from api.events import responses as event_responses
from pipeline.accounting.recount import Recount
from pipeline.domain.events import AddOptions, StageName, Status
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.events import retention
from pipeline.events.retention import Retention
from pipeline.ingest.add import add_messages
from pipeline.tenants.private_runs import Privacy
from tests.support.engine import Engine

DAY = timedelta(days=1)


def keeper(engine: Engine, *, keys: timedelta = DAY, outputs: timedelta | None = DAY) -> Retention:
    return Retention(engine.ledger.engine, keys_for=keys, outputs_for=outputs)


async def add(engine: Engine, key: str, user_id: str = "maya") -> UUID:
    return await engine.send(engine.scope(user_id), [Message(Role.USER, "I like jazz.")], key=key)


async def execute(engine: Engine, query: str) -> Any:
    async with engine.ledger.engine.begin() as connection:
        return await connection.execute(text(query))


async def grow_old(engine: Engine) -> None:
    """Make stage runs and idempotency keys two days older."""
    await execute(engine, "UPDATE stage_runs SET finished_at = finished_at - interval '2 days'")
    await execute(engine, "UPDATE idempotency_keys SET created_at = created_at - interval '2 days'")


async def outputs(engine: Engine) -> int:
    return int((await execute(engine, "SELECT count(output) FROM stage_runs")).scalar_one())


async def test_working_data_of_ended_events_goes_and_their_receipts_stay(engine: Engine) -> None:
    event_id = await engine.add("I live in Berlin.")
    await engine.drain()
    before = event_responses.event(await engine.event(event_id))
    await grow_old(engine)
    stored = await outputs(engine)
    assert stored == len(before["stages"])
    assert await keeper(engine).drop_outputs() == stored
    assert await outputs(engine) == 0
    after = event_responses.event(await engine.event(event_id))
    untimed = [{k: v for k, v in s.items() if k != "finished_at"} for s in after["stages"]]
    assert untimed == [{k: v for k, v in s.items() if k != "finished_at"} for s in before["stages"]]
    assert {k: v for k, v in after.items() if k != "stages"} == {
        k: v for k, v in before.items() if k != "stages"
    }
    assert (await engine.ledger.balance.totals()).balanced


async def test_working_data_of_an_event_under_way_stays_however_old(engine: Engine) -> None:
    event_id = await engine.add("I live in Berlin.")
    await engine.run_until(StageName.APPLY)
    await grow_old(engine)
    assert await keeper(engine).drop_outputs() == 0
    await engine.drain()
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_rows_of_a_batch_that_was_taken_apart_go_whole(engine: Engine) -> None:
    event_id = await engine.add("I live in Berlin.")
    await engine.drain()
    await execute(engine, "UPDATE events SET batch_id = NULL")
    await execute(
        engine,
        "INSERT INTO failed_runs (batch_id, stage, code, model, calls, prompt_tokens,"
        " completion_tokens, ms) SELECT DISTINCT batch_id, 'extract', 'X', '', 1, 1, 1, 1"
        " FROM stage_runs",
    )
    await grow_old(engine)
    await keeper(engine).drop_outputs()
    for table in ("stage_runs", "failed_runs"):
        assert (await execute(engine, f"SELECT count(*) FROM {table}")).scalar_one() == 0
    assert (await engine.event(event_id)).status is Status.SUCCEEDED


async def test_what_is_young_stays_and_without_a_setting_all_of_it(engine: Engine) -> None:
    await add(engine, "mine")
    await engine.drain()
    stored = await outputs(engine)
    assert await keeper(engine).drop_outputs() == 0
    assert await keeper(engine).forget_keys() == 0
    await grow_old(engine)
    assert await keeper(engine, outputs=None).drop_outputs() == 0
    assert await outputs(engine) == stored > 0


async def test_a_forgotten_key_may_be_used_again_and_the_counts_still_balance(
    engine: Engine,
) -> None:
    first = await add(engine, "mine")
    await engine.drain()
    assert await add(engine, "mine") == first
    await grow_old(engine)
    assert await keeper(engine).forget_keys() == 1
    assert await add(engine, "mine") != first
    await engine.drain()
    books = await engine.ledger.balance.totals()
    assert books.balanced
    assert books.succeeded == 2


async def test_several_sweepers_share_the_work_and_each_takes_a_share(engine: Engine) -> None:
    count = 2 * retention.A_SHARE + 500
    await execute(
        engine,
        "INSERT INTO idempotency_keys (project_id, key, digest, event_id, created_at)"
        " SELECT gen_random_uuid(), n::text, '', gen_random_uuid(), now() - interval '2 days'"
        f" FROM generate_series(1, {count}) n",
    )
    gone = 0
    while taken := await asyncio.gather(*(keeper(engine).forget_keys() for _ in range(3))):
        assert max(taken) <= retention.A_SHARE
        if not any(taken):
            break
        gone += sum(taken)
    assert gone == count


async def test_daily_costs_of_users_go_and_those_of_the_project_stay(engine: Engine) -> None:
    await execute(
        engine,
        "INSERT INTO usage_daily (project_id, user_id, day, model, part)"
        f" SELECT '{engine.project.id}', user_id, current_date - days, 'm', 0"
        " FROM unnest(ARRAY['', 'maya']) user_id, unnest(ARRAY[0, 39, 41, 900]) days",
    )
    lasting = Retention(engine.ledger.engine, keys_for=DAY, outputs_for=None)
    assert await lasting.forget_usage() == 0
    limited = Retention(engine.ledger.engine, keys_for=DAY, outputs_for=None, usage_for=40 * DAY)
    assert await limited.forget_usage() == 2
    assert await limited.forget_usage() == 0
    query = "SELECT user_id, current_date - day FROM usage_daily ORDER BY 1, 2"
    rows = [tuple(row) for row in await execute(engine, query)]
    assert rows == [("", 0), ("", 39), ("", 41), ("", 900), ("maya", 0), ("maya", 39)]


async def erase_a_session_and_a_user(engine: Engine) -> list[UUID]:
    """Erase a temporary run with two events, and a user with one. Returns the erasures' events."""
    ledger, project_id = engine.ledger, engine.project.id
    await ledger.private_runs.declare(project_id, "visit", Privacy.TEMPORARY)
    for sentence in ("I live in Berlin.", "I like tea."):
        await add_messages(
            Scope(project_id, user_id="maya", run_id="visit"),
            [Message(Role.USER, sentence)],
            AddOptions(),
            said_at=None,
            ledger=ledger,
            dispatcher=engine.hints,
        )
    await add(engine, "hers", user_id="noor")
    await engine.drain()
    ids = [
        await ledger.erasures.erase(project_id, OwnerKey(kind, name))
        for kind, name in (("run", "visit"), ("user", "noor"))
    ]
    for _ in range(2):  # a second pass looks for vectors that were written beside the first one
        for of_sessions in (True, False):
            index = engine.services.index
            await erasure.finish(erasures=ledger.erasures, index=index, of_sessions=of_sessions)
        await execute(engine, "UPDATE erasures SET due_at = now() WHERE due_at IS NOT NULL")
    return ids


async def age_erasures(engine: Engine) -> None:
    """Make erasures and what they have left two days older."""
    await execute(engine, "UPDATE events SET erased_at = erased_at - interval '2 days'")
    await execute(engine, "UPDATE erasures SET created_at = created_at - interval '2 days'")


async def rows(engine: Engine) -> dict[str, int]:
    """Number of rows of the tables that an erasure empties or writes."""
    tables = ("events", "erasures", "event_costs", "stage_runs")
    counts = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables)
    return {row[0]: row[1] for row in await execute(engine, counts)}


async def test_what_an_erasure_leaves_goes_after_a_time_and_the_counts_stay(
    engine: Engine,
) -> None:
    await add(engine, "mine", user_id="ada")
    await erase_a_session_and_a_user(engine)
    before, stored = await engine.ledger.balance.totals(), await rows(engine)
    assert stored["events"] == 6
    limited = Retention(engine.ledger.engine, keys_for=DAY, outputs_for=None, erased_for=DAY)
    assert await limited.forget_erased() == 0
    await age_erasures(engine)
    assert await keeper(engine).forget_erased() == 0
    assert await rows(engine) == stored
    assert await limited.forget_erased() == 5
    assert await limited.forget_erased() == 0
    left = await rows(engine)
    assert (left["events"], left["erasures"]) == (1, 0)
    assert left["stage_runs"] < stored["stage_runs"]
    after = await engine.ledger.balance.totals()
    assert after == before
    assert after.balanced
    assert await Recount(engine.ledger.engine).wrong() == 0
    await engine.ledger.balance.fold()
    assert await Recount(engine.ledger.engine).wrong() == 0


async def test_an_organization_deleted_after_that_leaves_exact_books(
    engine: Engine,
) -> None:
    await erase_a_session_and_a_user(engine)
    await age_erasures(engine)
    limited = Retention(engine.ledger.engine, keys_for=DAY, outputs_for=None, erased_for=DAY)
    await limited.forget_erased()
    await engine.ledger.project_deletion.remove(engine.project.organization_id)
    assert (await engine.ledger.balance.totals()).balanced
    left = "SELECT kind FROM books WHERE amount <> 0 AND owner = ''"
    assert (await execute(engine, left)).all() == []


async def test_erasures_stay_in_a_project_with_seals_and_while_vectors_are_left(
    engine: Engine,
) -> None:
    ids = await erase_a_session_and_a_user(engine)
    await age_erasures(engine)
    limited = Retention(engine.ledger.engine, keys_for=DAY, outputs_for=None, erased_for=DAY)
    sealed = "INSERT INTO seal_projects (project_id, state) SELECT id, 'complete' FROM projects"
    await execute(engine, sealed)
    assert await limited.forget_erased() == 0
    await execute(engine, "DELETE FROM seal_projects")
    due = "UPDATE erasures SET due_at = now(), memory_ids = '{}' WHERE of_session"
    await execute(engine, due)
    assert await limited.forget_erased() == 4
    assert (await rows(engine))["erasures"] == 1
    receipt = await engine.ledger.erasures.receipt(engine.project.id, ids[0])
    assert receipt.counts["events"] == 2
