"""Vectors of turns: written after the events, used by searches, and deleted with the turns."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from pipeline import bootstrap
from pipeline.domain.errors import ModelRejected, StoreUnavailable
from pipeline.domain.events import AddOptions, EventType
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.vectors import Vector
from pipeline.erasure import service as erasure
from pipeline.events.dead_letters import Edit
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.tables import turn_vectors
from pipeline.memories import service as memories
from pipeline.memories.delete_by_filter import DeleteRequest
from pipeline.ports import VectorHit, VectorRecord
from pipeline.replays.store import ReplayOptions
from pipeline.search.query import Query
from pipeline.search.service import SearchResult, search
from pipeline.settings import Settings
from pipeline.turns.vectors import MOST_CHARACTERS
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import LIMITS, Engine
from tests.support.stack import wait_until
from tests.support.vectors_memory import InMemoryVectors

# The turn states no fact, and shares no word with the query.
TURN, QUERY = "Who let my hound out into the garden?", "dog"
MEANINGS = {"hound": "dog", "puppy": "dog", "automobile": "car"}


class Sense(HashEmbedder):
    """Embedder that knows some synonyms, and rejects one text."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += texts
        if any("unspeakable" in text for text in texts):
            raise ModelRejected("against the policy")
        words = [re.findall(r"\w+", text.casefold()) for text in texts]
        return await super().embed([" ".join(MEANINGS.get(w, w) for w in all_) for all_ in words])


@pytest.fixture
def engine(engine: Engine) -> Engine:
    embedder = Sense()
    index = VectorIndex(engine.vectors, engine.ledger.memory_vectors, embedder, buckets=4)
    engine.services = replace(engine.services, embedder=embedder, index=index)
    return engine


async def ask(
    engine: Engine, text: str = QUERY, *, off: bool = False, **options: Any
) -> SearchResult:
    services = engine.services
    chosen = {"top_k": 10, "threshold": 0.2, "turns": True} | options
    return await search(
        engine.project.id,
        Query(text, parse({"user_id": "maya"}), **chosen),
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
        turns=None if off else engine.turns,
    )


async def texts(engine: Engine, text: str = QUERY, **options: Any) -> list[str]:
    return [hit.passage.text for hit in (await ask(engine, text, **options)).hits]


async def held(engine: Engine) -> set[UUID]:
    """Ids of all turns in the store."""
    names = [name for name in await engine.vectors.list_cols() if name.startswith("turns-")]
    listed = [await engine.vectors.list(name, where={}, limit=1000) for name in names]
    return {record.id for records in listed for record in records}


async def age(engine: Engine, seconds: float) -> None:
    """Let every pending turn vector be this many seconds older."""
    earlier = turn_vectors.c.accepted_at - timedelta(seconds=seconds)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(turn_vectors).values(accepted_at=earlier))


async def rows(engine: Engine) -> int:
    async with engine.ledger.engine.connect() as connection:
        return len((await connection.execute(select(turn_vectors.c.id))).all())


# ── finding ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_is_found_by_meaning_with_no_word_in_common(engine: Engine) -> None:
    await engine.add(TURN)
    await engine.drain()
    assert await texts(engine) == []
    assert await engine.turns.catch_up() == 1
    [hit] = (await ask(engine)).hits
    assert hit.passage.text == TURN
    assert hit.score.semantic > 0.2
    assert hit.score.lexical == 0
    assert await engine.turns.catch_up() == 0


async def test_a_turns_vector_is_compared_from_the_ledger_until_the_index_holds_it(
    engine: Engine,
) -> None:
    async def down(name: str, records: list[VectorRecord]) -> None:
        raise StoreUnavailable("down")

    insert, engine.vectors.insert = engine.vectors.insert, down  # type: ignore[method-assign,assignment]
    await engine.add(TURN)
    with pytest.raises(StoreUnavailable):
        await engine.turns.catch_up()
    before = (await ask(engine)).hits
    engine.vectors.insert = insert  # type: ignore[method-assign]
    await engine.turns.catch_up()
    assert len(await held(engine)) == 1
    assert [hit.score.semantic for hit in (await ask(engine)).hits] == pytest.approx(
        [hit.score.semantic for hit in before]
    )
    assert len(before) == 1


async def test_the_threshold_cuts_a_turn_once_its_meaning_is_known(engine: Engine) -> None:
    await engine.add("The garden of my aunt is a jungle of weeds, I say.")
    assert len(await texts(engine, "garden", threshold=0.9)) == 1
    await engine.turns.catch_up()
    assert await texts(engine, "garden", threshold=0.9) == []
    [explained] = (await ask(engine, "garden", threshold=0.9, explain=None)).explained
    assert explained.verdict == "below_threshold"


async def test_a_turn_that_only_words_find_is_weighed_by_its_meaning_too(engine: Engine) -> None:
    await engine.add("My garden.", "The garden of my aunt is a jungle of weeds, I say.")
    await engine.turns.catch_up()

    async def nothing(*_: object, **__: object) -> list[list[VectorHit]]:
        return []

    near = {hit.passage.text: hit.score.semantic for hit in (await ask(engine, "garden")).hits}
    engine.vectors.search = nothing  # type: ignore[method-assign]
    assert {h.passage.text: h.score.semantic for h in (await ask(engine, "garden")).hits} == (
        pytest.approx(near)
    )


async def test_a_search_of_facts_alone_asks_nothing_about_turns(engine: Engine) -> None:
    await engine.add("I own a hound.")
    await engine.drain()
    await engine.services.index.catch_up()
    await engine.turns.catch_up()
    searched: list[str] = []
    store_search = engine.vectors.search

    async def noted(name: str, *of: Any, **more: Any) -> list[list[VectorHit]]:
        searched.append(name.partition("-")[0])
        return await store_search(name, *of, **more)

    engine.vectors.search = noted  # type: ignore[method-assign]
    assert await texts(engine, turns=False) == ["User owns a hound"]
    assert searched == ["memories"]
    assert await texts(engine, facts=False) == ["I own a hound."]
    assert searched == ["memories", "turns"]


async def test_switched_off_turns_are_found_by_their_words_alone(engine: Engine) -> None:
    await engine.add(TURN)
    await engine.turns.catch_up()
    assert await texts(engine, off=True) == []
    assert await texts(engine, "hound", off=True, threshold=0.9) == [TURN]


async def test_the_setting_decides_whether_turns_are_embedded() -> None:
    given = {"database_url": "postgresql://127.0.0.1:9/none", "chroma_url": "http://127.0.0.1:9"}
    for setting, expected in (("on", True), ("off", False)):
        settings = Settings.model_validate({**given, "turn_vectors": setting})
        stores = bootstrap.stores(settings)
        services = bootstrap.services(settings, stores)
        assert (stores.turns is not None) is expected
        assert len(stores.indexes) == 1 + expected
        assert (services.turn_projector is not None) is expected
        await stores.close()


# ── pending vectors ──────────────────────────────────────────────────────────────────────────────


async def test_a_turn_that_is_a_memory_or_has_no_speaker_gets_no_vector(
    engine: Engine,
) -> None:
    await engine.add("The key is under the mat.", options=AddOptions(infer=False))
    await engine.send(
        engine.scope(),
        [Message(Role.SYSTEM, "Be brief."), Message(Role.USER, " \n"), Message(Role.USER, "Hm.")],
    )
    assert await rows(engine) == 1


async def test_the_vectors_of_turns_follow_behind_their_event(engine: Engine) -> None:
    projector = Projector(engine.turns)
    engine.services = replace(engine.services, turn_projector=projector)
    await engine.add(TURN)
    await engine.drain()
    assert await held(engine) == set()
    running = asyncio.create_task(projector.run())

    async def caught_up() -> bool:
        return len(await held(engine)) == 1

    await wait_until(caught_up, within_s=60, what="the projector caught up")
    running.cancel()
    assert await texts(engine) == [TURN]


async def test_what_is_younger_than_asked_for_is_left_to_the_workers(engine: Engine) -> None:
    await engine.add(TURN)
    assert await engine.turns.catch_up(stale_for_s=60) == 0
    await age(engine, 61)
    assert await engine.turns.catch_up(stale_for_s=60) == 1


async def test_a_text_the_embedder_refuses_keeps_no_other_from_its_vector(engine: Engine) -> None:
    await engine.add("My hound barks.", "It was unspeakable.", "My puppy barks.")
    await engine.turns.catch_up()
    assert len(await held(engine)) == 2
    assert await engine.turns.catch_up() == 0  # the rejected text is not tried again
    assert await texts(engine, "dog") == ["My hound barks.", "My puppy barks."]


async def test_of_a_turn_without_end_the_beginning_is_embedded(engine: Engine) -> None:
    await engine.add("My hound. " + "And so on. " * 1_000)
    await engine.turns.catch_up()
    assert isinstance(engine.services.embedder, Sense)
    assert max(map(len, engine.services.embedder.asked)) == MOST_CHARACTERS


async def test_a_replay_embeds_nothing_that_was_said(engine: Engine) -> None:
    await engine.add(TURN)
    await engine.drain()
    _, hint = await engine.ledger.shadows.create(engine.scope(), ReplayOptions(), LIMITS)
    assert hint is not None
    await engine.run(hint)
    await engine.drain()
    assert await rows(engine) == 1


# ── turns that are deleted or changed ────────────────────────────────────────────────────────────


async def test_what_is_cleared_makes_room_in_the_index(engine: Engine) -> None:
    await engine.add(TURN)
    await engine.drain()
    await engine.turns.catch_up()
    await memories.clear(
        engine.project.id,
        DeleteRequest(EventType.DELETE_ALL, parse({"user_id": "maya"}), {}),
        clearing=engine.ledger.clearing,
        index=engine.services.index,
        dispatcher=engine.hints,
    )
    assert await texts(engine) == []
    assert len(await held(engine)) == 1
    assert await engine.turns.catch_up() == 1
    assert await held(engine) == set()


async def test_what_is_undone_or_cancelled_is_not_held_and_comes_back_with_a_replay(
    engine: Engine,
) -> None:
    cancelled = await engine.add(TURN)
    await engine.turns.catch_up()
    await engine.ledger.cancellation.cancel(engine.project.id, cancelled)
    await engine.turns.catch_up()
    assert not await held(engine)
    undone = await engine.add("I own a puppy.")
    await engine.drain()
    await engine.turns.catch_up()
    await engine.ledger.undo.undo(
        engine.project.id, undone, force=False, vectors={}, embedder="fake/hash"
    )
    assert await texts(engine) == []
    await engine.ledger.dead_letters.replay(engine.project.id, cancelled, Edit())
    await engine.turns.catch_up()
    assert await texts(engine) == [TURN]
    assert len(await held(engine)) == 1


async def test_a_replay_with_other_words_is_found_by_these_alone(engine: Engine) -> None:
    event_id = await engine.add(TURN, "And the puppy?")
    await engine.turns.catch_up()
    await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    edit = Edit([Message(Role.USER, "Who has parked the automobile?")], 9)
    await engine.ledger.dead_letters.replay(engine.project.id, event_id, edit)
    await engine.turns.catch_up()
    assert len(await held(engine)) == 1
    assert await texts(engine, "dog") == []
    assert await texts(engine, "car") == ["Who has parked the automobile?"]


async def test_a_vector_of_other_words_written_late_is_written_again(engine: Engine) -> None:
    event_id = await engine.add(TURN)
    await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    await engine.ledger.dead_letters.replay(engine.project.id, event_id, Edit())
    edits = [Edit([Message(Role.USER, "Who has parked the automobile?")], 9)]
    insert = engine.vectors.insert

    async def frozen(name: str, records: list[VectorRecord]) -> None:
        if edits:  # the turn's text changes while this write waits
            await engine.ledger.cancellation.cancel(engine.project.id, event_id)
            await engine.ledger.dead_letters.replay(engine.project.id, event_id, edits.pop())
            await engine.turns.catch_up()
        await insert(name, records)

    engine.vectors.insert = frozen  # type: ignore[method-assign,assignment]
    await engine.turns.catch_up()
    assert await engine.turns.catch_up() == 1
    assert await texts(engine, "car") == ["Who has parked the automobile?"]
    assert await texts(engine, "dog") == []


@pytest.mark.parametrize("away", ["store", "ledger"])
async def test_a_vector_written_late_before_an_outage_is_written_again(
    engine: Engine, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = await engine.add(TURN)
    await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    await engine.ledger.dead_letters.replay(engine.project.id, event_id, Edit())
    edit = Edit([Message(Role.USER, "Who has parked the automobile?")], 9)
    turns = engine.turns
    another = turns.of(turns.source)
    insert = engine.vectors.insert

    async def refuse(*_: object, **__: object) -> list[UUID]:
        raise LedgerUnavailable(ConnectionError())

    async def late(name: str, records: list[VectorRecord]) -> None:
        """Write after another process has written newer words, and lose a server then."""
        monkeypatch.undo()
        await engine.ledger.cancellation.cancel(engine.project.id, event_id)
        await engine.ledger.dead_letters.replay(engine.project.id, event_id, edit)
        await another.catch_up()
        await insert(name, records)
        if away == "store":
            raise StoreUnavailable("killed after the write")
        monkeypatch.setattr(turns.source, "projected", refuse)

    monkeypatch.setattr(engine.vectors, "insert", late)
    with pytest.raises((StoreUnavailable, LedgerUnavailable)):
        await turns.catch_up()
    monkeypatch.undo()
    await engine.add("And the puppy?")
    await turns.catch_up()
    await turns.catch_up()
    assert await texts(engine, "car") == ["Who has parked the automobile?"]
    assert TURN not in await texts(engine, "dog")


async def test_a_project_that_is_removed_leaves_no_vector(engine: Engine) -> None:
    engine.project = await engine.ledger.projects.add(engine.project.organization_id, "second")
    await engine.add(TURN)
    await engine.drain()
    await engine.turns.catch_up()
    project, index = engine.project, engine.services.index

    class Down(InMemoryVectors):
        async def list_cols(self) -> list[str]:
            raise StoreUnavailable("down")

    away = VectorIndex(Down(), engine.ledger.memory_vectors, HashEmbedder(), buckets=4)
    with pytest.raises(StoreUnavailable):
        await erasure.remove(project, deletion=engine.ledger.project_deletion, index=away)
    assert len(await held(engine)) == 1
    await erasure.remove(project, deletion=engine.ledger.project_deletion, index=index)
    assert await held(engine) == set()
    assert await rows(engine) == 0


SIGNED = Message(Role.USER, "Maya: I live in Oslo.", "Maya")


async def sign(engine: Engine, *, infer: bool) -> None:
    await engine.send(engine.scope("maya"), [SIGNED], AddOptions(infer=infer))
    await engine.drain()


@pytest.mark.parametrize("infer", [True, False])
async def test_who_says_it_is_no_part_of_what_is_embedded(engine: Engine, infer: bool) -> None:
    await sign(engine, infer=infer)
    await engine.turns.catch_up()
    embedder = engine.services.embedder
    assert isinstance(embedder, Sense)
    assert "I live in Oslo." in embedder.asked
    assert SIGNED.content not in embedder.asked
    [hit] = (await ask(engine, "Where is Oslo?", facts=not infer, threshold=0.0)).hits
    assert hit.passage.text == SIGNED.content


async def test_nor_where_an_index_is_built_in_another_models_vectors(engine: Engine) -> None:
    await sign(engine, infer=False)
    [projection] = await engine.ledger.memory_vectors.following(UUID(int=0), limit=10)
    assert projection.text == "I live in Oslo."
