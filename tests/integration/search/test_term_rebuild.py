"""Stored terms after a change of the tokenizer: cut again in steps, each row once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import select, text, update

from pipeline.ledger.tables import memories, messages, term_cuts
from pipeline.search.words import term_rebuild
from pipeline.text.terms import CUT, terms
from tests.support.engine import Engine

LINES = ("I live in Bern.", "I like tea.", "I work at Bosch.", "I have a dog.", "I swim.")
OLD = ["old", "terms"]


@pytest.fixture
async def old(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A ledger whose texts are cut as by an earlier tokenizer."""
    monkeypatch.setattr(term_rebuild, "ROWS", 2)
    monkeypatch.setattr(term_rebuild, "STEPS", 1)
    for line in LINES:
        await engine.add(line)
    await engine.drain()
    async with engine.ledger.engine.begin() as connection:
        for table in (memories, messages):
            await connection.execute(update(table).values(terms=OLD))
    return engine


async def stored(engine: Engine) -> dict[str, list[str]]:
    async with engine.ledger.engine.connect() as connection:
        queries = (
            select(memories.c.text, memories.c.terms),
            select(messages.c.content, messages.c.terms),
        )
        return {row[0]: row[1] for query in queries for row in await connection.execute(query)}


async def walks(engine: Engine) -> list[tuple[int, Any]]:
    async with engine.ledger.engine.connect() as connection:
        rows = await connection.execute(select(term_cuts).order_by(term_cuts.c.name))
        return [(row.cut, row.position) for row in rows]


async def test_every_text_is_cut_again_in_bounded_steps(old: Engine) -> None:
    left = [len(await stored(old))]
    while left[-1]:
        await old.ledger.term_rebuild.walk()
        left.append(sum(cut == OLD for cut in (await stored(old)).values()))
    assert {before - after for before, after in pairwise(left)} <= {0, 1, 2}
    await old.ledger.term_rebuild.walk()
    assert {line: cut for line, cut in (await stored(old)).items() if cut != terms(line)} == {}
    assert await walks(old) == [(CUT, None)] * 2


async def test_a_walk_goes_on_where_it_was_stopped(old: Engine) -> None:
    await old.ledger.term_rebuild.walk()
    [(version, position), _] = await walks(old)
    assert version < CUT
    assert position is not None
    # Rows before the saved position are not cut a second time.
    async with old.ledger.engine.begin() as connection:
        first = memories.c.id <= position[0]
        await connection.execute(update(memories).where(first).values(terms=["later"]))
    for _ in range(20):
        await old.ledger.term_rebuild.walk()
    assert list((await stored(old)).values()).count(["later"]) == 2


async def test_a_row_that_changes_at_the_same_time_keeps_its_terms(
    old: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(texts: list[str]) -> list[list[str]]:
        async with old.ledger.pools.adds.begin() as connection:
            await connection.execute(text("UPDATE memories SET terms = '{edited}'"))
        return [["stale"] for _ in texts]

    monkeypatch.setattr(term_rebuild, "cut", cut)
    await old.ledger.term_rebuild.walk()
    async with old.ledger.engine.connect() as connection:
        rows = (await connection.scalars(select(memories.c.terms))).all()
    assert {tuple(row) for row in rows} == {("edited",)}


async def test_a_new_ledger_has_nothing_to_cut(engine: Engine) -> None:
    await engine.ledger.term_rebuild.walk()
    assert await walks(engine) == [(CUT, None)] * 2
