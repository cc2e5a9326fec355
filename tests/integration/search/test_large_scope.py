"""Searches of a large scope by words: an inverted index selects the memories to score."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from uuid import UUID

import pytest
from sqlalchemy import text

from pipeline.domain.filters import parse
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger import statements
from pipeline.ledger.byte_cache import ByteCache
from pipeline.ledger.engine import connect
from pipeline.search import store
from pipeline.search.store import Passages
from pipeline.search.where import Where
from pipeline.search.words.statistics import FRESH_S, StatisticsCache
from pipeline.text import terms
from tests.support.engine import Engine
from tests.support.explained import explaining
from tests.support.plans import rows_read_so_far

MAYA = {"user_id": "maya"}
WORDS = ("tea", "garden", "lisbon", "train", "gardenhouse", "violin", "chess", "harbour")


def compare_whole(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Set the size of the largest scope that is compared whole, also in compiled statements."""
    monkeypatch.setattr(store, "MOST_WHOLE", most)
    monkeypatch.setattr(statements.SHAPES, "kept", ByteCache(10**6, lambda _: 1))


async def store_texts(
    engine: Engine, texts: list[str], *, user: str = "maya", project: UUID | None = None
) -> None:
    """Insert memories without the pipeline."""
    scope = Scope(ProjectId(project or engine.project.id), user_id=user)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            text(
                """INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, terms,
                    attributed_to, embedding, embedder, said_at, valid_from)
                SELECT gen_random_uuid(), :project_id, :lane_id, :user, :text,
                    decode(md5(:text), 'hex'), :terms, 'user', '', 'fake/hash', now(), now()"""
            ),
            [
                {
                    "project_id": scope.project_id,
                    "lane_id": scope.lane_id,
                    "user": user,
                    "text": words,
                    "terms": terms.terms(words),
                }
                for words in texts
            ],
        )


def where(engine: Engine, tree: Mapping[str, object] = MAYA, *, turns: bool = False) -> Where:
    return Where.of(engine.project.id, parse(tree), facts=True, turns=turns, expired=False)


async def found(
    passages: Passages, query: Where, question: str, limit: int = 200
) -> dict[UUID, float]:
    hits = await passages.by_words(query, terms.query_terms(question), limit=limit)
    return {key.id: round(share, 6) for key, share in hits.shares.items()}


async def test_lookups_score_as_a_comparison_of_the_whole_scope(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(3)
    # Statistics count a text twice that has a word and a compound with it: few texts have both.
    words = [*WORDS, *(f"filler{n}" for n in range(32))]
    texts = [" ".join([*chance.sample(words, k=4), f"no{n}"]) for n in range(60)]
    await store_texts(engine, texts)
    await store_texts(engine, ["tea in lisbon"] * 1, user="sam")
    whole = Passages(engine.ledger.engine)
    compare_whole(monkeypatch, 60)
    questions = ("tea in lisbon", "garden", "violin no7", "gardenhouse harbour", "unheard of")
    expected = [await found(whole, where(engine), question) for question in questions]
    compare_whole(monkeypatch, 59)
    large = Passages(engine.ledger.engine)
    for question, shares in zip(questions, expected, strict=True):
        assert await found(large, where(engine), question) == pytest.approx(shares, abs=0.05)
    assert expected[0]
    assert not expected[-1]


async def test_a_search_of_a_large_scope_obeys_its_filter(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    other, _ = await engine.ledger.projects.create("other")
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    await store_texts(engine, [f"tea {n}" for n in range(9)], user="sam")
    await store_texts(engine, [f"tea {n}" for n in range(9)], project=other.id)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE memories SET state = 'RETIRED' WHERE text = 'tea 1'"))
        await connection.execute(
            text("UPDATE memories SET expiration_date = '2020-01-01' WHERE text = 'tea 2'")
        )
        await connection.execute(
            text("""UPDATE memories SET metadata = '{"kind": "green"}' WHERE text ~ '[34567]'""")
        )
    passages = Passages(engine.ledger.engine)
    assert len(await found(passages, where(engine), "tea")) == 7
    green = where(engine, {"AND": [MAYA, {"metadata": {"kind": "green"}}]})
    assert len(await found(passages, green, "tea")) == 5
    assert len(await found(passages, where(engine, {"user_id": "*"}), "tea")) == 14


async def test_a_new_memory_is_found_before_words_are_counted_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    passages = Passages(engine.ledger.engine)
    assert await found(passages, where(engine), "tea")
    await store_texts(engine, ["Quastenflosser"])
    assert len(await found(passages, where(engine), "quastenflosser")) == 1
    assert not await found(passages, where(engine), "unheard")


async def test_a_scope_that_became_empty_and_is_filled_again_is_searched(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    now = [0.0]
    passages = Passages(engine.ledger.engine)
    statistics = passages._statistics = StatisticsCache(clock=lambda: now[0])
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    assert len(await found(passages, where(engine), "tea")) == 9
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("DELETE FROM memories"))
    now[0] = FRESH_S
    assert not await found(passages, where(engine), "tea")
    await asyncio.gather(*statistics._recounts.values())
    assert not await found(passages, where(engine), "tea")
    await store_texts(engine, [f"tea again {n}" for n in range(9)])
    ids, number = await passages.in_scope(engine.scope(), ["tea"], limit=200)
    assert (len(ids), number) == (9, 9)


async def test_temporary_sessions_hide_no_memory(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    await store_texts(engine, [f"tea in a session {n}" for n in range(200)])
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(text("UPDATE memories SET temporary = true, run_id = 'night'"))
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    passages = Passages(engine.ledger.engine)
    assert len(await found(passages, where(engine), "tea")) == 9
    session = {"AND": [MAYA, {"run_id": {"in": ["night", "day"]}}]}
    hits = await passages.by_words(where(engine, session), ["tea"], limit=200)
    assert hits.shares
    assert hits.cut


async def test_a_search_with_old_statistics_says_that_it_read_too_little(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    passages = Passages(engine.ledger.engine)
    before = await passages.by_words(where(engine), ["tea"], limit=200)
    assert not before.cut
    await store_texts(engine, [f"tea import {n}" for n in range(200)])
    after = await passages.by_words(where(engine), ["tea"], limit=200)
    assert after.cut


async def test_few_turns_beside_very_many_memories_are_all_compared(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_whole(monkeypatch, 3)
    await store_texts(engine, [f"tea {n}" for n in range(9)])
    await engine.add("I drink tea.")
    passages, query = Passages(engine.ledger.engine), where(engine, turns=True)
    for _ in range(2):  # without and with statistics
        hits = await passages.by_words(query, ["tea"], limit=200)
        assert sum(key.is_turn for key in hits.shares) == 1
        assert len(hits.shares) == 10
        assert not hits.cut


@pytest.mark.parametrize("turns", [False, True])
async def test_rows_read_by_a_search_do_not_grow_with_the_scope(
    engine: Engine, turns: bool
) -> None:
    fill = """INSERT INTO memories (id, project_id, lane_id, user_id, text, text_hash, terms,
            attributed_to, embedding, embedder, said_at, valid_from)
        SELECT gen_random_uuid(), :project_id, :project_id, 'maya', 'x',
            decode(md5(:s || n), 'hex'), ARRAY['user', 'like', 'dish' || n % 500, 'no' || n],
            'user', '', 'fake/hash', now(), now()
        FROM generate_series(1, 4000) n"""
    single = connect(engine.ledger.engine.url.render_as_string(hide_password=False), pool_size=1)
    query, reads = where(engine, turns=turns), []
    for part in range(2):
        async with engine.ledger.engine.begin() as connection:
            values = {"project_id": engine.project.id, "s": str(part)}
            await connection.execute(text(fill), values)
        passages = Passages(single)
        await passages.by_words(query, ["dish7", "user"], limit=200)
        before = await rows_read_so_far(single)
        hits = await passages.by_words(query, ["dish7", "user"], limit=200)
        reads.append(await rows_read_so_far(single) - before)
        assert hits.shares
    await single.dispose()
    assert hits.cut
    assert reads[1] < 1.5 * reads[0] + 200


async def test_each_passage_of_the_lookups_is_compared_once(engine: Engine) -> None:
    """A join of the ranked passages with those that were read took one times the other."""
    await store_texts(engine, [f"tea garden {n}" for n in range(2_500)])
    single = connect(engine.ledger.engine.url.render_as_string(hide_password=False), pool_size=1)
    with explaining(single) as recorder:
        passages = Passages(single)
        for _ in range(2):
            hits = await passages.by_words(where(engine), ["tea", "garden"], limit=200)
        [plan] = [plan for plan in await recorder.taken() if "lookup" in plan.words][-1:]
    await single.dispose()
    assert len(hits.shares) == 200
    assert plan.read < 10_000, plan
