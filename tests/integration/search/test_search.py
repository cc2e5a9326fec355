"""Search over facts and turns: hits and their order, in four languages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text, update

from pipeline import telemetry
from pipeline.cpu_thread import SharedThread
from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.events import AddOptions, StageName
from pipeline.domain.filters import parse
from pipeline.domain.messages import Message, Role
from pipeline.domain.passages import Turn
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector
from pipeline.ledger.tables import memories
from pipeline.search import dense, service
from pipeline.search.concurrency import ConcurrencyLimit
from pipeline.search.query import Query
from pipeline.search.service import SearchLimits, SearchResult, search
from pipeline.search.store import Passages, WordHits
from pipeline.search.weights import Weights
from pipeline.vector_index.index import VectorIndex
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import Engine

VERBATIM = AddOptions(infer=False)


async def ask(engine: Engine, text: str, **options: Any) -> SearchResult:
    where = options.pop("filter", {"user_id": "maya"})
    services = engine.services
    return await search(
        engine.project.id,
        Query(text, parse(where), **{"top_k": 10, "threshold": 0.0} | options),
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
        turns=engine.turns,
    )


async def texts(engine: Engine, text: str, **options: Any) -> list[str]:
    return [hit.passage.text for hit in (await ask(engine, text, **options)).hits]


async def say(
    engine: Engine,
    text: str,
    *,
    name: str | None = None,
    run_id: str | None = None,
    at: datetime | None = None,
    options: AddOptions = VERBATIM,
) -> None:
    await engine.send(
        Scope(engine.project.id, user_id="maya", run_id=run_id),
        [Message(Role.USER, text, name)],
        options,
        said_at=at,
    )


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_is_found_before_any_worker_has_seen_it(engine: Engine) -> None:
    await engine.add("I am allergic to peanuts.")
    [hit] = (await ask(engine, "peanuts", turns=True, threshold=0.1)).hits
    assert isinstance(hit.passage, Turn)
    assert hit.passage.pending
    assert await texts(engine, "peanuts") == []


async def test_a_processed_turn_stands_beside_its_fact_and_is_no_longer_pending(
    engine: Engine,
) -> None:
    await engine.add("I am allergic to peanuts.")
    await engine.drain()
    hits = (await ask(engine, "peanuts", turns=True)).hits
    assert sorted(type(hit.passage).__name__ for hit in hits) == ["Memory", "Turn"]
    [turn] = (await ask(engine, "peanuts", facts=False, turns=True)).hits
    assert isinstance(turn.passage, Turn)
    assert not turn.passage.pending


async def test_a_turn_stored_word_for_word_is_not_returned_twice(engine: Engine) -> None:
    await say(engine, "The key is under the mat.")
    assert len(await texts(engine, "key", turns=True)) == 1
    await engine.drain()
    [hit] = (await ask(engine, "key", turns=True)).hits
    assert not isinstance(hit.passage, Turn)
    await engine.ledger.editing.retire(engine.project.id, [hit.passage.id])
    assert await texts(engine, "key", turns=True) == []


async def test_what_was_cancelled_or_undone_was_never_said(engine: Engine) -> None:
    cancelled = await engine.add("I drive a Saab.")
    await engine.ledger.cancellation.cancel(engine.project.id, cancelled)
    undone = await engine.add("I drive a Volvo.")
    await engine.drain()
    await engine.ledger.undo.undo(
        engine.project.id, undone, force=False, vectors={}, embedder=engine.services.embedder.name
    )
    assert await texts(engine, "Saab Volvo", turns=True) == []


async def test_a_turns_id_is_the_same_whenever_it_is_found(engine: Engine) -> None:
    await engine.add("I am allergic to peanuts.")
    [before] = (await ask(engine, "peanuts", turns=True)).hits
    await engine.run_until(StageName.RELATE)
    [after] = (await ask(engine, "peanuts", facts=False, turns=True)).hits
    assert before.passage.id == after.passage.id


async def test_filters_read_turns_as_they_read_facts(engine: Engine) -> None:
    await engine.add("I like jazz.", options=AddOptions(metadata={"trip": "lisbon"}))
    await engine.add("I like jazz a lot.", user_id="jon")

    async def count(**where: object) -> int:
        return len(await texts(engine, "jazz", turns=True, filter={"user_id": "maya"} | where))

    assert await count(metadata={"trip": "lisbon"}) == 1
    assert await count(metadata={"trip": "oslo"}) == 0
    assert await count(created_at={"gte": "2020-01-01"}) == 1
    assert await count(timestamp={"lt": "2020-01-01"}) == 0
    assert await count(keywords={"icontains": "JAZZ"}) == 1
    assert await count(attributed_to="user") == 1
    assert await count(attributed_to="assistant") == 0
    assert await count(memory_ids=["00000000-0000-0000-0000-000000000001"]) == 0
    assert await texts(engine, "jazz", turns=True, filter={"user_id": "*"}) != []
    other, _ = await engine.ledger.projects.create("other")
    engine.project = other
    assert await texts(engine, "jazz", turns=True, filter={"user_id": "maya"}) == []


# ── ranking ──────────────────────────────────────────────────────────────────────────────────────


async def test_of_two_equal_words_the_named_speakers_are_first(engine: Engine) -> None:
    await say(engine, "I went to the lake with the boat", name="Jon", run_id="a")
    await say(engine, "I went to the lake with the tent", name="Maya", run_id="b")
    await engine.drain()
    assert "tent" in (await texts(engine, "What did Maya do at the lake?"))[0]
    assert "boat" in (await texts(engine, "What did Jon do at the lake?"))[0]


async def test_what_was_said_in_the_month_asked_for_is_first(engine: Engine) -> None:
    for month, what in ((3, "boat"), (5, "tent"), (9, "kayak")):
        at = datetime(2024, month, 10, tzinfo=UTC)
        await say(engine, f"I bought a {what} for the lake", run_id=what, at=at)
    await engine.drain()
    assert "tent" in (await texts(engine, "What did I buy for the lake in May 2024?"))[0]
    asked_in_october = datetime(2024, 10, 2, tzinfo=UTC)
    assert (
        "kayak" in (await texts(engine, "What for the lake last month?", now=asked_in_october))[0]
    )


async def test_an_answer_is_found_beside_its_question_in_the_order_of_saying(
    engine: Engine,
) -> None:
    began = datetime(2024, 5, 1, tzinfo=UTC)
    spoken = ["Which instrument does your sister play?", "Cello, since she was six"]
    for run_id, lines in (("a", spoken), ("b", ["Nice weather today", "Trumpets are loud"])):
        # Accepted in reverse order: only their times give the right one.
        for at, line in reversed(list(enumerate(lines))):
            await say(engine, line, run_id=run_id, at=began + timedelta(seconds=20 * at))
    await engine.drain()
    assert (await texts(engine, "instrument of the sister"))[:2] == spoken


async def test_every_term_of_a_score_can_be_seen(engine: Engine) -> None:
    await say(engine, "I bought a tent", name="Maya")
    await engine.drain()
    [hit] = (await ask(engine, "What did Maya buy?")).hits
    assert hit.score.shares["speaker"] > 0
    assert hit.score.shares["lexical"] > 0
    assert hit.score.shares["date"] == hit.score.shares["recency"] == 0
    assert sum(hit.score.shares.values()) == pytest.approx(hit.score.total)


async def test_terms_that_are_off_by_default_count_once_they_weigh_something(
    engine: Engine,
) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    await say(engine, "I like tea with milk", run_id="old", at=old)
    await say(engine, "I like tea with lemon", run_id="new")
    await engine.add("I live in Berlin.")
    await engine.drain()
    hits = (await ask(engine, "tea", weights=Weights(recency=1.0))).hits
    new = {hit.passage.text: hit.score.shares["recency"] for hit in hits}
    assert new["I like tea with lemon"] > 0.1
    assert new["I like tea with milk"] < 0.01
    named = (await ask(engine, "Who knows Berlin?", weights=Weights(graph=1.0))).hits
    assert [hit.score.shares["graph"] > 0 for hit in named] == [
        "Berlin" in h.passage.text for h in named
    ]


# ── results besides the hits ─────────────────────────────────────────────────────────────────────


async def test_the_turns_around_a_hit_come_on_request(engine: Engine) -> None:
    began = datetime(2024, 5, 1, tzinfo=UTC)
    lines = ["One apple", "Two pears", "Three plums", "Four figs"]
    for at, line in enumerate(lines):
        await say(engine, line, at=began + timedelta(minutes=at))
    await say(engine, "Five nuts", run_id="elsewhere", at=began)
    await engine.drain()
    [hit] = (await ask(engine, "plums", around=1, top_k=1)).hits
    assert [turn.text for turn in hit.around] == ["Two pears", "Four figs"]
    [hit] = (await ask(engine, "plums", around=3, top_k=1)).hits
    assert [turn.text for turn in hit.around] == ["One apple", "Two pears", "Four figs"]
    assert (await ask(engine, "plums", top_k=1)).hits[0].around == ()


async def test_no_turn_returns_what_a_person_deleted(engine: Engine) -> None:
    await engine.add("I am allergic to peanuts.")
    await engine.add("I like walking by the river.")
    await engine.drain()
    [memory] = [
        hit.passage for hit in (await ask(engine, "peanuts")).hits if "peanut" in hit.passage.text
    ]
    assert len(await texts(engine, "peanuts river", facts=False, turns=True)) == 2
    await engine.ledger.editing.retire(engine.project.id, [memory.id])
    left = await texts(engine, "peanuts river", facts=False, turns=True)
    assert left == ["I like walking by the river."]
    for hit in (await ask(engine, "river", turns=True, around=3)).hits:
        assert all("peanut" not in turn.text for turn in hit.around)


async def test_a_model_that_supersedes_a_fact_hides_no_turn(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.add("I moved to Munich.")
    await engine.drain()
    assert len(await texts(engine, "Berlin Munich", facts=False, turns=True)) == 2


async def test_a_search_says_what_became_of_a_memory(engine: Engine) -> None:
    for what in ("tea", "coffee", "cocoa"):
        await say(engine, f"I like {what}", options=AddOptions(infer=False, metadata={"is": what}))
    await engine.drain()
    ids = {h.passage.text: h.passage.id for h in (await ask(engine, "like")).hits}
    of_maya = {"user_id": "maya"}

    async def verdict(what: str, **options: Any) -> str:
        memory_id = ids.get(f"I like {what}", UUID(int=1))
        [explained] = (await ask(engine, "I like tea", explain=[memory_id], **options)).explained
        assert (explained.rank is None) == (explained.score is None)
        return explained.verdict

    assert await verdict("tea") == "returned"
    assert await verdict("cocoa", top_k=1) == "beyond_top_k"
    assert await verdict("cocoa", threshold=0.99) == "below_threshold"
    assert await verdict("cocoa", filter=of_maya | {"metadata": {"is": "tea"}}) == "filtered"
    assert await verdict("water") == "unknown"
    cut = (await ask(engine, "I like tea", explain=None, top_k=1)).explained
    assert [line.verdict for line in cut] == ["beyond_top_k", "beyond_top_k"]
    assert [line.rank for line in cut] == [2, 3]


async def test_a_remote_embedder_that_hangs_leaves_a_search_to_words(engine: Engine) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()

    class Hanging(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            await asyncio.Event().wait()
            return []

    answer = await search(
        engine.project.id,
        Query("Saab", parse({"user_id": "maya"}), top_k=10, threshold=0.0),
        ledger=engine.ledger,
        embedder=Hanging(),
        index=engine.services.index,
        limits=SearchLimits(embedder_s=0.01),
    )
    assert answer.degraded
    assert [hit.passage.text for hit in answer.hits] == ["User drives a Saab"]


@dataclass(slots=True)
class Meeting:
    """Steps that each wait until all of them have begun."""

    steps: set[str]
    begun: set[str] = field(default_factory=set)
    all: asyncio.Event = field(default_factory=asyncio.Event)

    async def arrive(self, step: str) -> None:
        self.begun.add(step)
        if self.begun == self.steps:
            self.all.set()
        async with asyncio.timeout(60):
            await self.all.wait()


@pytest.mark.usefixtures("few_in_index")
@pytest.mark.parametrize("other", ["embedder", "index"])
async def test_words_are_compared_while_the_embedder_or_the_index_computes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()
    meeting = Meeting({"words", other})
    by_words, nearest = Passages.by_words, VectorIndex.nearest

    async def words(self: Passages, *given: Any, **options: Any) -> WordHits:
        await meeting.arrive("words")
        return await by_words(self, *given, **options)

    async def indexed(self: VectorIndex, *given: Any, **options: Any) -> Any:
        if other == "index":
            await meeting.arrive("index")
        return await nearest(self, *given, **options)

    class Slow(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if other == "embedder":
                await meeting.arrive("embedder")
            return await super().embed(texts)

    monkeypatch.setattr(Passages, "by_words", words)
    monkeypatch.setattr(VectorIndex, "nearest", indexed)
    answer = await search(
        engine.project.id,
        Query("Saab", parse({"user_id": "maya"}), top_k=10, threshold=0.0),
        ledger=engine.ledger,
        embedder=Slow(),
        index=engine.services.index,
    )
    assert not answer.degraded
    assert [hit.passage.text for hit in answer.hits] == ["User drives a Saab"]


async def test_a_search_leaves_its_place_while_a_remote_embedder_computes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.search.concurrency.PROJECT_AT_ONCE", 1)
    await engine.add("I drive a Saab.")
    await engine.drain()

    class Blocked(HashEmbedder):
        called, answers = asyncio.Event(), asyncio.Event()

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            self.called.set()
            await self.answers.wait()
            return await super().embed(texts)

    limits, blocked = SearchLimits(ConcurrencyLimit()), Blocked()
    run = partial(
        search,
        engine.project.id,
        Query("Saab", parse({"user_id": "maya"}), top_k=10, threshold=0.0),
        ledger=engine.ledger,
        index=engine.services.index,
        limits=limits,
    )
    waiting = asyncio.create_task(run(embedder=blocked))
    await blocked.called.wait()
    async with asyncio.timeout(60):
        assert len((await run(embedder=HashEmbedder())).hits) == 1
    assert not waiting.done()
    blocked.answers.set()
    assert len((await waiting).hits) == 1


async def test_the_question_of_a_search_is_embedded_before_texts_that_wait(engine: Engine) -> None:
    class Shared(HashEmbedder):
        """Embedder that computes in one thread, as the built-in one does."""

        def __init__(self) -> None:
            super().__init__()
            self.thread = SharedThread("test")
            self.embedded: list[str] = []
            self.question = asyncio.Event()

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if texts[0] == "Saab":
                self.question.set()
            await self.thread.run(partial(self.embedded.append, texts[0]))
            return await super().embed(texts)

    embedder, may_end = Shared(), threading.Event()
    query = Query("Saab", parse({"user_id": "maya"}), top_k=10, threshold=0.0)
    async with asyncio.TaskGroup() as group:
        group.create_task(embedder.thread.run(partial(may_end.wait, 60)))
        group.create_task(embedder.embed(["a batch edit"]))
        await asyncio.sleep(0)
        group.create_task(
            search(
                engine.project.id,
                query,
                ledger=engine.ledger,
                embedder=embedder,
                index=engine.services.index,
            )
        )
        await embedder.question.wait()
        may_end.set()
    assert embedder.embedded == ["Saab", "a batch edit"]


@pytest.mark.usefixtures("few_in_index")
async def test_without_vectors_words_find_turns_and_facts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()

    async def down(*_: object, **__: object) -> None:
        raise StoreUnavailable("down")

    before = without_vectors()
    engine.vectors.search = down  # type: ignore[method-assign,assignment]
    answer = await ask(engine, "Saab", turns=True, threshold=0.9)
    assert answer.degraded_parts == ["meaning"]
    assert without_vectors() > before
    assert len(answer.hits) == 2
    monkeypatch.setattr(type(engine.ledger.graph), "near", down)
    assert (await ask(engine, "Saab", turns=True)).degraded_parts == ["meaning", "relations"]
    monkeypatch.undo()
    vars(engine.vectors).pop("search")
    before = without_vectors()
    answer = await ask(engine, "Saab", turns=True)
    assert (answer.degraded, answer.degraded_parts) == (False, [])
    assert without_vectors() == before


@pytest.mark.usefixtures("few_in_index")
async def test_a_store_that_does_not_answer_delays_a_search_for_a_limited_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()
    await engine.services.index.catch_up()

    async def frozen(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    engine.vectors.search = frozen  # type: ignore[method-assign,assignment]
    monkeypatch.setattr(dense, "INDEX_TIMEOUT_S", 0.01)
    answer = await ask(engine, "Saab")
    assert answer.degraded_parts == ["meaning"]
    assert len(answer.hits) == 1


def without_vectors() -> float:
    """Value of the counter."""
    (family,) = telemetry.searches_without_vectors.collect()
    return next(s.value for s in family.samples if s.name.endswith("_total"))


async def test_without_words_in_time_meaning_finds_the_memory(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()
    monkeypatch.setattr(service, "WORDS_TIMEOUT_S", 0.0)
    answer = await ask(engine, "Saab", threshold=0.0)
    assert answer.degraded_parts == ["words"]
    assert [hit.passage.text for hit in answer.hits] == ["User drives a Saab"]


async def test_without_words_by_the_time_limit_of_the_ledger_meaning_finds_the_memory(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()

    async def too_long(*_: object, **__: object) -> None:
        async with engine.ledger.engine.begin() as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 10"))
            await connection.execute(text("SELECT pg_sleep(60)"))

    monkeypatch.setattr(type(engine.ledger.passages), "by_words", too_long)
    answer = await ask(engine, "Saab")
    assert answer.degraded_parts == ["words"]
    assert [hit.passage.text for hit in answer.hits] == ["User drives a Saab"]


# ── languages ────────────────────────────────────────────────────────────────────────────────────

SENTENCES = {
    "de": [
        "Ich wohne seit einem Jahr in Köln.",
        "Meine Schwester spielt Geige im Orchester.",
        "Am Wochenende repariere ich alte Fahrräder.",
        "Mein Hund heißt Bruno und mag Käse.",
    ],
    "es": [
        "Vivo en Málaga desde hace un año.",
        "Mi hermana toca el violín en la orquesta.",
        "Los fines de semana reparo bicicletas viejas.",
        "Soy alérgico a los cacahuetes.",
    ],
    "zh": [
        "我在杭州住了一年。",
        "我妹妹在乐团拉小提琴。",
        "周末我修理旧自行车。",
        "我对花生过敏。",
    ],
    "en": [
        "I have lived in Porto for a year.",
        "My sister plays the violin in an orchestra.",
        "At weekends I repair old bicycles.",
        "I bought peanuts for the squirrels.",
    ],
}


@pytest.mark.parametrize(
    ("language", "question", "place"),
    [
        ("de", "Wer wohnt in Koeln oder KÖLN?", 0),
        ("de", "Was spielt die Schwester im Orchester?", 1),
        ("de", "Wer repariert Fahrräder?", 2),
        ("de", "Wie heissen die Hunde, und mögen sie Käse?", 3),
        ("es", "¿Quién vive en Malaga?", 0),
        ("es", "¿Qué toca su hermana en la orquesta?", 1),
        ("es", "¿Quién repara bicicletas?", 2),
        ("es", "¿Es alérgico a algún cacahuete?", 3),
        ("zh", "谁住在杭州？", 0),
        ("zh", "妹妹拉什么琴？", 1),
        ("zh", "谁修理自行车？", 2),
        ("zh", "花生过敏吗", 3),
        ("en", "Who is living in Porto?", 0),
        ("en", "What does his sister play?", 1),
        ("en", "Who repairs a bicycle?", 2),
        ("en", "What did she buy for a squirrel?", 3),
    ],
)
async def test_the_right_sentence_is_first(
    engine: Engine, language: str, question: str, place: int
) -> None:
    for at, sentence in enumerate(SENTENCES[language]):
        await say(engine, sentence, run_id=str(at))
    await engine.drain()
    assert (await texts(engine, question))[0] == SENTENCES[language][place]


@pytest.mark.usefixtures("few_in_index")
async def test_a_memory_that_the_index_lacks_is_compared_by_its_vector_in_the_ledger(
    engine: Engine,
) -> None:
    await engine.add("I like jazz.")
    await engine.drain()
    await engine.vectors.reset()
    await make_stale(engine)
    [hit] = (await ask(engine, "User likes jazz")).hits
    assert hit.score.signals.semantic > 0.9


@pytest.mark.usefixtures("few_in_index")
async def test_a_scope_without_stale_vectors_reads_none(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.add("I like jazz.")
    await engine.drain()
    await engine.services.index.catch_up()
    reads: list[str] = []
    vectors = engine.ledger.memory_vectors
    read = vectors.stale_vectors

    async def counted(where: Mapping[str, str], **options: Any) -> list[tuple[UUID, bytes]]:
        reads.append(where["user_id"])
        return await read(where, **options)

    monkeypatch.setattr(vectors, "stale_vectors", counted)
    await ask(engine, "jazz")
    assert reads == []
    await make_stale(engine)
    await ask(engine, "jazz")
    assert reads == ["maya"]


async def make_stale(engine: Engine) -> None:
    """Mark the vectors of all memories as stale."""
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(projected_version=0))
