"""What the stages do to memories, history, graph and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain import AddOptions, Answer, GraphChanges, StoredRelation
from pipeline.errors import ModelRejected, StoreUnavailable
from pipeline.filters import parse
from pipeline.ledger.filtering import lanes_of, matches
from pipeline.ports import VectorRecord
from pipeline.search import Found, Hit, Query, search
from tests.support.engine import Engine


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


async def test_infer_false_stores_as_said_without_a_model_and_drops_repeats(
    engine: Engine,
) -> None:
    options = AddOptions(infer=False, metadata={"turn": 1})
    event_id = await engine.add("What a day!", "What a day!", options=options)
    await engine.drain()
    assert await engine.outcomes(event_id) == [("ADD", "What a day!"), ("NOOP", "What a day!")]
    assert [run.calls for run in (await engine.event(event_id)).stages] == [0, 0, 0, 0]


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
    where = lanes_of(engine.project.id, {"user_id": "maya"})
    near = await engine.ledger.graph.near(where, "user", [], limit=10)
    assert [(r.relation, r.destination) for r in near if r.relation == "lives_in"] == [
        ("lives_in", "Munich")
    ]


@dataclass
class NoGraph(RulesModel):
    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
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


async def test_vectors_that_fail_park_the_event_until_the_store_is_back(engine: Engine) -> None:
    insert = engine.vectors.insert

    async def down(name: str, records: list[VectorRecord]) -> None:
        raise StoreUnavailable("down")

    engine.vectors.insert = down  # type: ignore[method-assign,assignment]
    event_id = await engine.add("I live in Berlin.")
    await engine.drain()
    assert (await engine.event(event_id)).wait_code == "STORE_UNAVAILABLE"
    engine.vectors.insert = insert  # type: ignore[method-assign]
    await engine.pass_time(2000)
    await engine.sweep()
    await engine.drain()
    assert (await engine.event(event_id)).status == "SUCCEEDED"
    assert len(await engine.history_rows()) == 1
    assert len(await found(engine, "Where does the user live?")) == 1


async def test_a_wiped_index_is_rebuilt_from_the_ledger(engine: Engine) -> None:
    from sqlalchemy import update

    from pipeline.ledger.schema import memories

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
    [memory_id] = [hit.memory.id for hit in await found(engine, "jazz")]
    await engine.ledger.memories.retire(engine.project.id, memory_id)  # the index is not told
    assert await found(engine, "jazz") == []


async def test_search_finds_what_only_words_find_and_never_another_scope(engine: Engine) -> None:
    await engine.add("I drive a Saab.", user_id="maya")
    await engine.add("I drive a Volvo.", user_id="jon")
    await engine.drain()
    [hit] = await found(engine, "saab volvo")
    assert "Saab" in hit.memory.text
    assert hit.score.lexical == 1.0


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
    memories = engine.ledger.memories

    async def texts(value: object, project: object = None) -> int:
        where = matches(project or engine.project.id, parse(value))  # type: ignore[arg-type]
        return (await memories.page(where, limit=10, offset=0))[1]

    maya = {"user_id": "maya"}
    assert await texts(maya | {"metadata": {"trip": "lisbon"}}) == 1
    assert await texts(maya | {"metadata.n": 3}) == 1
    assert await texts(maya | {"metadata": {"trip": {"ne": "lisbon"}}}) == 1
    assert await texts(maya | {"metadata": {"n": {"ne": 3}}}) == 1  # a null is not 3
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


async def found(engine: Engine, text: str) -> list[Hit]:
    return list((await search_all(engine, text)).hits)


async def search_all(engine: Engine, text: str) -> Found:
    services = engine.services
    query = Query(text, parse({"user_id": "maya"}), top_k=10, threshold=0.0)
    return await search(
        engine.project.id,
        query,
        ledger=services.ledger,
        embedder=services.embedder,
        index=services.index,
    )
