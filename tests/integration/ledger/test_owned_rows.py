"""Lists of an owner: conflicts, suggestions, runs of the curator, changes and replays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.domain.conflicts import ConflictState
from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.ledger import owned_rows
from pipeline.ledger.owned_rows import ListPage
from pipeline.memories import feed
from pipeline.stores import Ledger
from tests.support.engine import Engine

RUNS, EACH = 12, 4
HELPER = {"agent_id": "helper"}
# Lanes of an agent, each of a user and a run, one of them temporary; and those of another agent.
LANES = f"""
    INSERT INTO lanes (id, project_id, user_id, agent_id, run_id, state)
    SELECT md5('l' || n)::uuid, CAST(:project_id AS uuid), 'u' || n % 3,
        CASE WHEN n <= {RUNS} THEN 'helper' ELSE 'other' END, 'r' || n, 'IDLE'
    FROM generate_series(1, {RUNS} + 3) n
"""
# Times with many ties.
ROWS = f"""
    FROM generate_series(1, ({RUNS} + 3) * {EACH}) n,
        LATERAL (SELECT (n - 1) % ({RUNS} + 3) + 1 AS lane,
            timestamptz '2026-01-01' + interval '1 minute' * (n * 7 % 11) AS at) t
"""
CONFLICTS = f"""
    INSERT INTO conflicts (id, project_id, lane_id, slot, event_id, created_at, open_until)
    SELECT md5('c' || n)::uuid, CAST(:project_id AS uuid), md5('l' || lane)::uuid, 'slot',
        md5('e')::uuid, at,
        CASE n % 4 WHEN 0 THEN 'infinity'::date WHEN 1 THEN current_date - 7 END {ROWS}
"""
SUGGESTIONS = f"""
    INSERT INTO suggestions (id, project_id, lane_id, kind, state, origin, targets, reason,
        content_hash, created_at)
    SELECT md5('s' || n)::uuid, CAST(:project_id AS uuid), md5('l' || lane)::uuid,
        CASE WHEN n % 3 = 0 THEN 'COMBINE' ELSE 'UPDATE' END,
        CASE WHEN n % 2 = 0 THEN 'OPEN' ELSE 'REJECTED' END, 'curator', '[]', '',
        decode(md5('s' || n), 'hex'), at {ROWS}
"""
CURATOR_RUNS = f"""
    INSERT INTO curator_runs (id, project_id, lane_id, origin, state, accepted_seq,
        max_suggestions, max_tokens, created_at, completed_at)
    SELECT md5('r' || n)::uuid, CAST(:project_id AS uuid), md5('l' || lane)::uuid, 'schedule',
        'SUCCEEDED', 1, 1, 1, at, at {ROWS}
"""
SHADOWS = f"""
    INSERT INTO shadows (id, project_id, user_id, agent_id, run_id, created_at)
    SELECT md5('x' || n)::uuid, CAST(:project_id AS uuid), 'u' || lane % 3,
        CASE WHEN lane <= {RUNS} THEN 'helper' ELSE 'other' END, 'r' || lane, at {ROWS}
"""
MEMORIES = f"""
    INSERT INTO memories (id, project_id, lane_id, user_id, agent_id, run_id, text, text_hash,
        attributed_to, embedding, embedder, said_at, valid_from, version, stored_at)
    SELECT md5('m' || n)::uuid, CAST(:project_id AS uuid), md5('l' || lane)::uuid, 'u' || lane % 3,
        CASE WHEN lane <= {RUNS} THEN 'helper' ELSE 'other' END, 'r' || lane, 'text ' || n,
        decode(md5('m' || n), 'hex'), 'user', '', 'fake/hash', at, at, 2,
        -- A repetition moves this time, and is no change of the history.
        at + interval '1 minute' * (n % 5) {ROWS}
"""
HISTORY = f"""
    INSERT INTO memory_history (memory_id, version, project_id, event, new_text, valid_from,
        created_at, temporary)
    SELECT md5('m' || n)::uuid, version, CAST(:project_id AS uuid), 'ADD', 'text', at,
        at - interval '1 minute' * (2 - version), lane = 5 {ROWS}, generate_series(1, 2) version
"""
# A trigger tells a temporary run by its own table.
TEMPORARY = "UPDATE lanes SET temporary = true WHERE id = md5('l5')::uuid"
FILLED = (LANES, TEMPORARY, CONFLICTS, SUGGESTIONS, CURATOR_RUNS, SHADOWS, MEMORIES, HISTORY)
Page = Callable[..., Awaitable[ListPage[Any]]]


@pytest.fixture
async def filled(engine: Engine) -> AsyncIterator[Engine]:
    """An engine with rows whose marks and numbers are made up, so they are deleted in the end."""
    async with engine.ledger.engine.begin() as connection:
        for statement in FILLED:
            values = {"project_id": str(engine.project.id)}
            await connection.execute(text(statement), values if ":project_id" in statement else {})
    yield engine
    async with engine.ledger.engine.begin() as connection:
        tables = ("conflicts", "suggestions", "curator_runs", "shadows", "memory_history")
        for table in (*tables, "memories", "lanes"):
            await connection.execute(text(f"DELETE FROM {table}"))


def key_of(row: Any) -> object:
    return (row.memory_id, row.version) if hasattr(row, "version") else row.id


def lists_of(ledger: Ledger) -> dict[str, tuple[Page, Mapping[str, Any], str]]:
    """Each list with its filter, and the rows that it has, as SQL."""
    of: dict[str, tuple[Page, Mapping[str, Any], str, str]] = {
        "all conflicts": (ledger.conflicts.page, {"state": None}, "conflicts", "true"),
        "open conflicts": (
            ledger.conflicts.page,
            {"state": ConflictState.OPEN},
            "conflicts",
            "open_until = 'infinity'",
        ),
        "resolved conflicts": (
            ledger.conflicts.page,
            {"state": ConflictState.RESOLVED},
            "conflicts",
            "open_until IS DISTINCT FROM 'infinity'",
        ),
        "all suggestions": (ledger.suggestions.page, {"state": None}, "suggestions", "true"),
        "open suggestions": (
            ledger.suggestions.page,
            {"state": SuggestionState.OPEN},
            "suggestions",
            "state = 'OPEN'",
        ),
        "combinations": (
            ledger.suggestions.page,
            {"state": None, "kind": SuggestionKind.COMBINE},
            "suggestions",
            "kind = 'COMBINE'",
        ),
        "rejected combinations": (
            ledger.suggestions.page,
            {"state": SuggestionState.REJECTED, "kind": SuggestionKind.COMBINE},
            "suggestions",
            "kind = 'COMBINE' AND state = 'REJECTED'",
        ),
        "runs": (ledger.curator.page, {}, "curator_runs", "true"),
    }
    plain = "SELECT id FROM {table} WHERE {condition} AND lane_id IN ({lanes}) {order}"
    order = "ORDER BY created_at DESC, id"
    lists: dict[str, tuple[Page, Mapping[str, Any], str]] = {
        name: (
            page,
            options,
            plain.format(table=table, condition=condition, order=order, lanes="{lanes}"),
        )
        for name, (page, options, table, condition) in of.items()
    }
    lists["changes"] = (
        ledger.histories.feed,
        {},
        "SELECT h.memory_id, h.version FROM memory_history h JOIN memories m ON m.id = h.memory_id"
        " WHERE m.lane_id IN ({lanes})"
        " ORDER BY h.created_at DESC, h.memory_id, h.version DESC",
    )
    return lists


NAMES = sorted(
    (
        *("all conflicts", "open conflicts", "resolved conflicts", "all suggestions"),
        *("open suggestions", "combinations", "rejected combinations", "runs", "changes"),
    )
)
OWNERS: Sequence[Mapping[str, str]] = (
    HELPER,
    {"user_id": "u1"},
    {"agent_id": "helper", "user_id": "u2"},
    {"run_id": "r5"},
    {"user_id": "unknown"},
)


async def expected(engine: Engine, query: str, ids: Mapping[str, str]) -> list[Any]:
    owned = " AND ".join(f"{name} = :{name}" for name in ids)
    shown = "" if "run_id" in ids else " AND NOT temporary"
    of = f"SELECT id FROM lanes WHERE {owned}{shown}"
    async with engine.ledger.engine.connect() as connection:
        rows = (await connection.execute(text(query.format(lanes=of)), dict(ids))).all()
    return [tuple(row) if len(row) > 1 else row[0] for row in rows]


def limited(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for module in (owned_rows, feed):
        for name, limit in limits.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, limit)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"DENSE": 1, "FEW_LANES": 1, "COUNTED": 0, "SPARE": 0, "WIDER": 2},
        {"DENSE": 1, "FEW_LANES": 1, "COUNTED": 5, "MOST_LANES": 3, "SPARE": 1, "WIDER": 2},
    ],
    ids=["few lanes", "more lanes", "of the project"],
)
async def test_pages_of_an_owner_are_its_rows_in_their_order(
    filled: Engine, monkeypatch: pytest.MonkeyPatch, limits: Mapping[str, int]
) -> None:
    lists = lists_of(filled.ledger)
    assert sorted(lists) == NAMES
    limited(monkeypatch, **limits)
    project_id = filled.project.id
    for name, (page, options, query) in lists.items():
        for ids in OWNERS:
            keys = await expected(filled, query, ids)
            for limit, offset in ((1, 0), (5, 0), (5, 5), (7, 21), (200, 0), (200, 300)):
                listed = await page(project_id, ids=ids, limit=limit, offset=offset, **options)
                shown = [key_of(row) for row in listed.rows]
                assert shown == keys[offset : offset + limit], (name, ids, limit, offset)
                assert "results" not in listed.bounded
                if not listed.bounded:
                    assert listed.count == len(keys)
                # A full page with a bounded count announces a further row: see `at_least`.
                more = bool(listed.bounded)
                assert offset + len(shown) <= listed.count <= len(keys) + more or not shown


async def test_a_page_that_may_lack_rows_says_so(
    filled: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(
        monkeypatch, DENSE=1, FEW_LANES=1, MOST_LANES=3, COUNTED=0, MOST_ROWS=0, MOST_MEMORIES=0
    )
    for name, (page, options, query) in lists_of(filled.ledger).items():
        keys = await expected(filled, query, HELPER)
        listed = await page(filled.project.id, ids=HELPER, limit=9, offset=0, **options)
        shown = [key_of(row) for row in listed.rows]
        # The newest rows of the project, of which some are another agent's.
        assert shown == keys[: len(shown)], name
        assert len(shown) < 9, name
        assert listed.bounded == ["count", "results"], name
        assert listed.count >= len(shown)


async def test_no_list_of_an_owner_has_rows_of_another_project(filled: Engine) -> None:
    other = UUID(int=7)
    for page, options, _ in lists_of(filled.ledger).values():
        listed = await page(other, ids=HELPER, limit=5, offset=0, **options)
        assert (list(listed.rows), listed.count, list(listed.bounded)) == ([], 0, [])


async def test_no_change_of_a_memory_is_later_than_its_mark(engine: Engine) -> None:
    """The lists of changes rely on it: see `pipeline.memories.feed`."""
    memory = await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.add("I live in Rome now.")
    await engine.drain()
    assert memory
    later = "SELECT count(*) FROM memory_history h JOIN memories m ON m.id = h.memory_id"
    async with engine.ledger.engine.connect() as connection:
        assert await connection.scalar(text(later)) > 1
        marked = f"{later} WHERE h.created_at > coalesce(m.stored_at, m.updated_at)"
        assert await connection.scalar(text(marked)) == 0
