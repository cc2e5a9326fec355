"""Effects of the stages on memories, history, graph and receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.adapters.model_rules.extract import TOO_LONG
from pipeline.domain.errors import ModelRejected, StoreUnavailable
from pipeline.domain.events import AddOptions, Instructions, StageName, Status
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.filters import parse
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.memories import Memory
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Answer
from pipeline.domain.writes import Write
from pipeline.memories import service as memories
from pipeline.memories.editing import MemoryEdit
from pipeline.memories.store import Touchable
from pipeline.ports import ExtractionRequest, VectorHit, VectorRecord
from pipeline.search.query import Query
from pipeline.search.ranking.latest import Hit
from pipeline.search.service import SearchResult, search
from tests.support.engine import Engine
from tests.support.stack import wait_until


async def test_a_change_supersedes_and_the_history_keeps_both(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    moved = await engine.add("I moved to Munich.")
    await engine.drain()
    [line] = (await engine.event(moved)).receipt
    assert line.outcome == "UPDATE"
    assert line.previous_text is not None
    assert "Berlin" in line.previous_text
    assert "Munich" in line.text
    assert [row[0] for row in await engine.history_rows()] == ["ADD", "UPDATE"]
    assert len(await engine.texts()) == 1


async def test_twenty_adds_of_one_fact_store_it_once_and_name_it_nineteen_times(
    engine: Engine,
) -> None:
    ids = [await engine.add("I am allergic to peanuts.") for _ in range(20)]
    await engine.drain()
    lines = [line for i in ids for line in (await engine.event(i)).receipt]
    assert sorted(line.outcome for line in lines) == ["ADD"] + ["NOOP"] * 19
    assert len({line.memory_id for line in lines}) == 1
    assert len(await engine.texts()) == 1


async def test_small_talk_succeeds_with_a_note_that_says_why(engine: Engine) -> None:
    event_id = await engine.add("How are you today?")
    await engine.drain()
    event = await engine.event(event_id)
    assert event.status == "SUCCEEDED"
    assert event.receipt == []
    assert event.note


async def test_the_receipt_of_an_event_with_facts_says_that_text_was_left_out(
    engine: Engine,
) -> None:
    whole = await engine.add("I like tea.")
    cut = await engine.add("I live in Berlin.", "I like jazz. " * 2_000)
    await engine.drain()
    event = await engine.event(cut)
    assert [line.text for line in event.receipt] == ["User lives in Berlin"]
    assert event.note == TOO_LONG
    assert (await engine.event(whole)).note is None


async def test_infer_false_stores_as_said_without_a_model_and_drops_repeats(
    engine: Engine,
) -> None:
    options = AddOptions(infer=False, metadata={"turn": 1})
    event_id = await engine.add("What a day!", "What a day!", options=options)
    await engine.drain()
    assert await engine.outcomes(event_id) == [("ADD", "What a day!"), ("NOOP", "What a day!")]
    assert [run.calls for run in (await engine.event(event_id)).stages] == [0, 0, 0]


async def test_an_immutable_memory_is_left_and_the_news_stored_beside_it(engine: Engine) -> None:
    await engine.add("I live in Berlin.", options=AddOptions(immutable=True))
    await engine.drain()
    await engine.add("I moved to Munich.")
    await engine.drain()
    assert len(await engine.texts()) == 2


async def test_relations_are_stored_and_an_ended_one_is_no_longer_read(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.add("I moved to Munich.")
    await engine.drain()
    near = await engine.relations("user")
    assert [(r.relation, r.destination) for r in near if r.relation == "lives_in"] == [
        ("lives_in", "Munich")
    ]


@dataclass
class NoGraph(RulesModel):
    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        raise ModelRejected("the graph prompt was refused")


async def test_a_graph_that_fails_for_good_leaves_the_memories_and_says_so(
    engine: Engine,
) -> None:
    engine.with_model(NoGraph())
    event_id = await engine.add("I live in Berlin.")
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == ("SUCCEEDED", "FAILED")
    assert len(await engine.texts()) == 1


async def test_a_memory_is_found_by_its_meaning_before_the_index_holds_it(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    assert await engine.vectors.list_cols() == []
    [hit] = await found(engine, "Where does the user live?")
    assert hit.score.semantic > 0
    assert await engine.services.index.catch_up() == 1
    [again] = await found(engine, "Where does the user live?")
    assert again.score.semantic == pytest.approx(hit.score.semantic)


async def test_an_index_that_cannot_be_written_delays_no_event(engine: Engine) -> None:
    async def down(name: str, records: list[VectorRecord]) -> None:
        raise StoreUnavailable("down")

    engine.vectors.insert = down  # type: ignore[method-assign,assignment]
    for text in ("I live in Berlin.", "I moved to Oslo."):
        event_id = await engine.add(text)
        await engine.drain()
        assert (await engine.event(event_id)).status == "SUCCEEDED"
    assert len(await engine.texts()) == 1  # the second fact was compared with the first


async def test_news_of_a_scope_that_is_not_large_need_no_index(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.vectors.reset()
    await engine.add("I moved to Oslo.")
    await engine.drain()
    assert await engine.texts() == ["User lives in Oslo"]


@pytest.mark.parametrize("exact", [300, 0], ids=["compared-whole", "asked-of-the-index"])
async def test_what_is_known_is_found_however_much_is_like_the_other_news(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    """Thirty memories are nearer to the second fact than the old residence is to the new one."""
    await engine.add("I live in Town20k.")
    await engine.drain()
    await engine.services.index.catch_up()
    for n in range(30):
        await engine.add(f"I like playing the same old sport every single day at club{n}k.")
    await engine.drain()
    monkeypatch.setattr("pipeline.ingest.stages.retrieve.MOST_EXACT", exact)
    await engine.add(
        "I moved to Town21k. I like playing the same old sport every single day at club30k."
    )
    await engine.drain()
    texts = await engine.texts()
    assert [text for text in texts if "Town" in text] == ["User lives in Town21k"]
    assert len(texts) == 32


async def test_news_wait_while_the_index_cannot_be_asked_what_they_are_news_to(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pipeline.ingest.stages.retrieve.MOST_EXACT", 0
    )  # treats the scope as a large one
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.services.index.catch_up()
    search = engine.vectors.search

    async def down(*_: object, **__: object) -> list[list[VectorHit]]:
        raise StoreUnavailable("down")

    engine.vectors.search = down  # type: ignore[method-assign]
    event_id = await engine.add("I moved to Oslo.")
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "STORE_UNAVAILABLE"
    engine.vectors.search = search  # type: ignore[method-assign]
    await engine.pass_time(2000)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status == "SUCCEEDED"
    assert len(await engine.texts()) == 1


async def test_news_of_a_large_scope_wait_where_its_index_is_gone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.ingest.stages.retrieve.MOST_EXACT", 0)
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.services.index.catch_up()
    await engine.vectors.reset()
    event_id = await engine.add("I moved to Oslo.")
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "STORE_UNAVAILABLE"
    assert await engine.texts() == ["User lives in Berlin"]


async def test_a_vector_written_late_over_a_newer_one_is_written_again(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    [memory] = [hit.passage for hit in await found(engine, "Berlin")]
    insert = engine.vectors.insert
    edits = ["User lives in Bonn"]

    async def frozen(name: str, records: list[VectorRecord]) -> None:
        if edits:  # this write waits while a newer one overtakes it
            await edit(engine, memory.id, edits.pop())
        await insert(name, records)

    engine.vectors.insert = frozen  # type: ignore[method-assign,assignment]
    index = engine.services.index
    await index.catch_up()
    assert await index.catch_up() == 1
    [record] = await engine.vectors.get(index.collection(memory.scope), [memory.id])
    assert record.payload["version"] == 2


async def test_the_projector_writes_all_pending_vectors_in_one_pass(engine: Engine) -> None:
    await engine.add("I live in Berlin. I like jazz.")
    await engine.drain()
    index, projector = engine.services.index, engine.services.projector
    running = asyncio.create_task(projector.run())

    async def caught_up() -> bool:
        return not await engine.ledger.memory_vectors.unprojected(stale_for_s=0, limit=1)

    await wait_until(caught_up, within_s=60, what="the projector caught up")
    running.cancel()
    assert await index.catch_up() == 0


@dataclass
class Passing(RulesModel):
    """Model that rewords the first memory and gives its old text to the second.

    Its facts have no attribute: a list would keep the words of both.
    """

    first: Memory
    second: Memory
    text: str

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        answer = await super().extract(request)
        return replace(answer, value=tuple(replace(fact, attribute=None) for fact in answer.value))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return Answer(
            (
                Decision(0, Outcome.UPDATE, "reworded", self.text, self.first.id),
                Decision(1, Outcome.UPDATE, "passed on", self.first.text, self.second.id),
            )
        )


async def test_one_memory_may_take_the_text_that_another_leaves(engine: Engine) -> None:
    jazz, chess = [await stored(engine, text) for text in ("I study jazz.", "I study chess.")]
    for changed, other, text, news in (
        (jazz, chess, "User studies opera", "I study jazz piano. I study chess openings."),
        (chess, jazz, "User sings", "I study jazz records. I study opera singers."),
    ):
        first, second = await current(engine, changed), await current(engine, other)
        engine.with_model(Passing(first, second, text))
        event_id = await engine.add(news)
        await engine.drain()
        assert (await engine.event(event_id)).status == "SUCCEEDED"
        assert (await current(engine, second)).text == first.text


async def test_an_edit_during_processing_is_not_overwritten(engine: Engine) -> None:
    await engine.add("I live in Berlin.")
    await engine.drain()
    [memory] = [hit.passage for hit in await found(engine, "Berlin")]
    await engine.add("I moved to Oslo.")
    await engine.run_until(StageName.APPLY)
    touchable = engine.ledger.memories.touchable
    edits = ["User lives in Bonn"]

    async def overtaken(scope: Scope, writes: Sequence[Write]) -> Touchable:
        read = await touchable(scope, writes)
        if edits:
            await edit(engine, memory.id, edits.pop())
        return read

    engine.ledger.memories.touchable = overtaken  # type: ignore[method-assign]
    await engine.drain()
    history = await engine.ledger.histories.of(engine.project.id, memory.id)
    assert [(h.version, h.old_text) for h in history][1:] == [(2, "User lives in Berlin")]
    assert "User lives in Bonn" in await engine.texts()
    assert len(await engine.texts()) == 2


async def test_a_wiped_index_is_rebuilt_from_the_ledger(engine: Engine) -> None:
    from sqlalchemy import update

    from pipeline.ledger.tables import memories

    await engine.add("I live in Berlin. I like jazz.")
    await engine.drain()
    await engine.vectors.reset()
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(memories).values(projected_version=0))
    assert await engine.services.index.catch_up() == 2
    assert await engine.services.index.catch_up() == 0


async def test_a_stale_vector_is_never_believed(engine: Engine) -> None:
    await engine.add("I like jazz.")
    await engine.drain()
    [memory_id] = [hit.passage.id for hit in await found(engine, "jazz")]
    await engine.ledger.editing.retire(engine.project.id, [memory_id])  # the index is not updated
    assert await found(engine, "jazz") == []


async def test_search_finds_what_only_words_find_and_never_another_scope(engine: Engine) -> None:
    await engine.add("I drive a Saab.", user_id="maya")
    await engine.add("I drive a Volvo.", user_id="jon")
    await engine.drain()
    [hit] = await found(engine, "saab volvo")
    assert "Saab" in hit.passage.text
    assert hit.score.lexical > 0.99


@pytest.mark.usefixtures("few_in_index")
async def test_search_without_vectors_says_that_it_is_degraded(engine: Engine) -> None:
    await engine.add("I drive a Saab.")
    await engine.drain()

    async def down(*_: object, **__: object) -> None:
        raise StoreUnavailable("down")

    engine.vectors.search = down  # type: ignore[method-assign,assignment]
    result = await search_all(engine, "Saab")
    assert result.degraded
    assert len(result.hits) == 1


async def test_filters_read_metadata_and_other_projects_never(engine: Engine) -> None:
    await engine.add("I like jazz.", options=AddOptions(metadata={"trip": "lisbon", "n": 3}))
    await engine.add("I like chess.", options=AddOptions(metadata={"trip": "oslo"}))
    await engine.drain()

    async def texts(value: object, project: ProjectId | None = None) -> int:
        project_id, tree = project or engine.project.id, parse(value)
        page = engine.ledger.memories.page
        return (await page(project_id, tree, expired=True, limit=10, offset=0))[1]

    maya = {"user_id": "maya"}
    assert await texts(maya | {"metadata": {"trip": "lisbon"}}) == 1
    assert await texts(maya | {"metadata.n": 3}) == 1
    assert await texts(maya | {"metadata": {"trip": {"ne": "lisbon"}}}) == 1
    assert await texts(maya | {"metadata": {"n": {"ne": 3}}}) == 1  # null is not equal to 3
    assert await texts(maya | {"metadata": {"trip": {"contains": "LIS"}}}) == 1
    assert await texts({"AND": [maya, {"NOT": {"metadata.trip": "oslo"}}]}) == 1
    assert await texts({"OR": [{"user_id": "jon"}, maya]}) == 2
    assert await texts({"user_id": "*"}) == 2
    assert await texts({"user_id": "maya", "agent_id": "*"}) == 0
    assert await texts(maya | {"created_at": {"gte": "2020-01-01", "lt": "2999-01-01"}}) == 2
    assert await texts(maya | {"keywords": {"icontains": "JAZZ"}}) == 1
    assert await texts(maya | {"text": {"contains": "100%"}}) == 0
    other, _ = await engine.ledger.projects.create("other")
    assert await texts(maya, other.id) == 0


async def stored(engine: Engine, text: str) -> Memory:
    event_id = await engine.add(text)
    await engine.drain()
    [line] = (await engine.event(event_id)).receipt
    assert line.memory_id is not None
    return await engine.ledger.memories.get(engine.project.id, line.memory_id)


async def current(engine: Engine, memory: Memory) -> Memory:
    return await engine.ledger.memories.get(engine.project.id, memory.id)


async def edit(engine: Engine, memory_id: UUID, text: str) -> None:
    services = engine.services
    await memories.edit(
        engine.project.id,
        [MemoryEdit(memory_id, {"text": text})],
        editing=engine.ledger.editing,
        embedder=services.embedder,
        index=services.index,
    )


async def found(engine: Engine, text: str) -> list[Hit]:
    return list((await search_all(engine, text)).hits)


async def search_all(engine: Engine, text: str) -> SearchResult:
    services = engine.services
    query = Query(text, parse({"user_id": "maya"}), top_k=10, threshold=0.0)
    return await search(
        engine.project.id,
        query,
        ledger=engine.ledger,
        embedder=services.embedder,
        index=services.index,
    )


async def test_only_a_stage_that_asks_a_language_model_needs_a_message(engine: Engine) -> None:
    for text in ("I live in Rome.", "I live in Paris now."):
        await engine.add(text)
        following = []
        while engine.hints.waiting:
            following.append(await engine.step())
    at_once = {hint.stage: hint.at_once for hint in following if hint is not None}
    assert at_once == {
        StageName.RETRIEVE: True,
        StageName.CONSOLIDATE: False,
        StageName.APPLY: True,
        StageName.RELATE: False,
    }


async def test_quick_stages_follow_under_the_same_claim(engine: Engine) -> None:
    verbatim = await engine.add("I live in Rome.", options=AddOptions(infer=False))
    [hint] = engine.hints.waiting
    assert await engine.run(hint, one_stage=False) is None
    event = await engine.event(verbatim)
    assert event.status is Status.SUCCEEDED
    assert {run.stage for run in event.stages} == {"extract", "retrieve", "apply"}
    assert await engine.texts() == ["I live in Rome."]
    engine.hints.waiting.clear()
    await engine.add("I live in Paris now.")
    following = await engine.run(engine.hints.waiting[0], one_stage=False)
    assert following is not None
    assert following.stage is StageName.CONSOLIDATE
    # One claim covers extract and retrieve.
    assert following.fence == hint.fence + 2
