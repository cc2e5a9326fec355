"""Replay of the graph stage alone: memories and receipt stay as they are, relations are added."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from sqlalchemy import update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict, MalformedAnswer
from pipeline.domain.events import Instructions, Status
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.filters import EventFilter
from pipeline.domain.graph.values import GraphChanges, GraphStatus, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.events import service as service_module
from pipeline.events.service import cancel, replay_all, replay_graph
from pipeline.ledger.tables.events import events
from pipeline.ports import ExtractionRequest
from tests.support.api_service import Service, error_of, serving
from tests.support.engine import Engine


@dataclass
class NoGraph(RulesModel):
    """Rules that fail in `relate`."""

    error: Exception = field(default_factory=lambda: MalformedAnswer("no JSON"))

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        raise self.error


@dataclass
class OnlyGraph(RulesModel):
    """Rules that accept no call but `relate`, and record its arguments."""

    calls: list[list[str]] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        raise AssertionError("the facts are kept")

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        raise AssertionError("the decisions are kept")

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        self.calls.append(request.texts)
        self.offered.append([edge.destination for edge in request.current])
        return await super().relate(request)


async def unrelated(engine: Engine, *texts: str, error: Exception | None = None) -> list[UUID]:
    """Events of one batch that SUCCEEDED, except for their graph; from now on the model works."""
    engine.with_model(NoGraph(error) if error else NoGraph())
    ids = [await engine.add(text) for text in texts]
    await engine.drain()
    for event_id in ids:
        event = await engine.event(event_id)
        assert (event.status, event.graph_status) == ("SUCCEEDED", "FAILED")
        assert event.batch_events == len(ids)
    engine.with_model(RulesModel())
    return ids


async def again(engine: Engine, event_id: UUID) -> None:
    await replay_graph(
        engine.project.id,
        event_id,
        dead_letters=engine.ledger.dead_letters,
        dispatcher=engine.hints,
    )


async def relations(engine: Engine) -> list[tuple[str, str]]:
    edges = await engine.relations("user berlin oslo anna")
    return sorted((edge.relation, edge.destination) for edge in edges)


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        yield built


@pytest.mark.parametrize("error", [MalformedAnswer("no JSON"), KeyError("relate")], ids=repr)
async def test_only_the_graph_is_done_again_and_the_receipt_stays(
    engine: Engine, error: Exception
) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.", error=error)
    before = await engine.event(event_id)
    assert before.failure_detail
    assert await relations(engine) == []
    engine.with_model(model := OnlyGraph())
    await again(engine, event_id)
    waiting = await engine.event(event_id)
    assert (waiting.status, waiting.graph_status, waiting.failure_detail) == ("PENDING", None, None)
    assert waiting.receipt == before.receipt
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == ("SUCCEEDED", "SUCCEEDED")
    assert (event.receipt, event.failure_detail, event.replays) == (before.receipt, None, 1)
    assert [run.stage for run in event.stages][-1] == "relate"
    assert len(model.calls) == 1
    assert await relations(engine) == [("lives_in", "Berlin")]
    assert len(await engine.history_rows()) == 1
    books = await engine.ledger.balance.totals(engine.project.id)
    assert (books.balanced, books.accepted, books.succeeded) == (True, 1, 1)


async def test_a_graph_that_fails_again_says_so_and_may_be_tried_again(engine: Engine) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    engine.with_model(NoGraph(MalformedAnswer("still no JSON")))
    await again(engine, event_id)
    await engine.drain()
    event = await engine.event(event_id)
    assert (event.status, event.graph_status) == ("SUCCEEDED", "FAILED")
    assert "still no JSON" in (event.failure_detail or "")
    engine.with_model(RulesModel())
    await again(engine, event_id)
    await engine.drain()
    assert (await engine.event(event_id)).graph_status == "SUCCEEDED"
    assert (await engine.event(event_id)).replays == 2


async def test_the_events_of_a_batch_go_together_whatever_the_width_is_by_then(
    engine: Engine,
) -> None:
    ids = await unrelated(engine, "I live in Berlin.", "I like jazz.", "I like chess.")
    async with engine.ledger.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE lanes SET width = 1")
    engine.with_model(model := OnlyGraph())
    await again(engine, ids[1])
    await engine.drain()
    assert [len(facts) for facts in model.calls] == [3]
    for event_id in ids:
        event = await engine.event(event_id)
        assert (event.graph_status, event.replays, event.batch_events) == ("SUCCEEDED", 1, 3)
    assert ("lives_in", "Berlin") in await relations(engine)


async def test_a_replay_waits_for_earlier_adds_and_later_adds_wait_for_it(
    engine: Engine,
) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    before = await engine.add("I like jazz.")
    await again(engine, event_id)
    after = await engine.add("I like chess.")
    assert len(engine.hints.waiting) == 1  # the lane is awake: no second hint
    ids, order = (before, event_id, after), []
    while engine.hints.waiting:
        await engine.step()
        ended = [
            event_id
            for event_id in ids
            if (await engine.event(event_id)).status is Status.SUCCEEDED
        ]
        order += [event_id for event_id in ended if event_id not in order]
    assert order == [before, event_id, after]
    assert (await engine.event(event_id)).graph_status == "SUCCEEDED"


async def test_what_a_later_event_has_overtaken_is_not_related_any_more(engine: Engine) -> None:
    """A late graph stage must neither add Berlin again nor end Oslo."""
    [event_id] = await unrelated(engine, "I live in Berlin.")
    await engine.add("I moved to Oslo.")
    await engine.drain()
    related = await relations(engine)
    engine.with_model(model := OnlyGraph())
    await again(engine, event_id)
    await engine.drain()
    assert (await engine.event(event_id)).graph_status == "SUCCEEDED"
    assert model.calls == []
    assert await relations(engine) == related


async def test_a_late_graph_cannot_end_what_began_after_its_facts(engine: Engine) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    await engine.add("My sister Anna lives in Oslo.")
    await engine.drain()
    engine.with_model(model := OnlyGraph())
    await again(engine, event_id)
    await engine.drain()
    assert model.calls
    assert model.offered == [[]]


async def test_what_was_undone_or_deleted_is_not_related_any_more(engine: Engine) -> None:
    ids = await unrelated(engine, "I live in Berlin.", "I live with Anna.", "I like chess.")
    await engine.undo(ids[0])
    gone = (await engine.event(ids[1])).receipt[0].memory_id
    assert gone is not None
    await engine.ledger.editing.retire(engine.project.id, [gone])
    with pytest.raises(Conflict, match="undone"):
        await again(engine, ids[0])
    engine.with_model(model := OnlyGraph())
    await again(engine, ids[2])
    await engine.drain()
    [facts] = model.calls
    assert [("chess" in fact) for fact in facts] == [True]


async def test_it_cannot_be_cancelled_for_its_memories_are_stored(engine: Engine) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    await again(engine, event_id)
    with pytest.raises(Conflict, match="its memories are stored"):
        await cancel(
            engine.project.id,
            event_id,
            cancellation=engine.ledger.cancellation,
            dispatcher=engine.hints,
        )
    await engine.drain()
    assert (await engine.event(event_id)).graph_status == "SUCCEEDED"


async def test_a_worker_that_dies_over_it_is_replaced_and_relates_once(engine: Engine) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    await again(engine, event_id)
    await engine.claim(engine.hints.waiting.popleft())
    await engine.pass_time(60)
    assert await engine.sweep() == 1
    await engine.drain()
    assert (await engine.event(event_id)).graph_status == "SUCCEEDED"
    assert await relations(engine) == [("lives_in", "Berlin")]


async def test_only_a_failed_graph_is_replayed(service: Service) -> None:
    engine = service.engine
    done = await service.add("I live in Berlin.")
    refused = await service.client.post(f"/v1/event/{done}/replay/", json={"stage": "relate"})
    assert refused.status_code == 409
    assert "this one is SUCCEEDED with a graph that SUCCEEDED" in error_of(refused)
    [event_id] = await unrelated(engine, "I like chess.")
    whole = await service.client.post(f"/v1/event/{event_id}/replay/")
    assert whole.status_code == 409
    assert '{"stage": "relate"}' in error_of(whole)
    answer = await service.client.post(f"/v1/event/{event_id}/replay/", json={"stage": "relate"})
    assert (answer.status_code, answer.json()["status"]) == (200, "PENDING")
    await engine.drain()
    assert (await service.event(str(event_id)))["graph_status"] == "SUCCEEDED"


async def test_all_graphs_that_failed_come_back_at_once(service: Service) -> None:
    engine = service.engine
    ids = [
        *await unrelated(engine, "I live in Berlin.", "I like jazz."),
        *await unrelated(engine, "I like chess."),
    ]
    body = {"stage": "relate", "user_id": "maya"}
    answer = await service.client.post("/v1/events/replay/", json=body)
    assert sorted(answer.json()["event_ids"]) == sorted(map(str, ids))
    await engine.drain()
    assert {(await engine.event(event_id)).graph_status for event_id in ids} == {"SUCCEEDED"}


async def test_a_graph_that_was_deleted_with_its_scope_is_not_built_again(
    service: Service,
) -> None:
    engine = service.engine
    [event_id] = await unrelated(engine, "I live in Berlin.")
    await service.client.delete("/v1/memories/", params={"user_id": "maya"})
    everything = {"stage": "relate", "user_id": "maya"}
    bulk = await service.client.post("/v1/events/replay/", json=everything)
    assert bulk.json() == {"replayed": 0, "event_ids": []}
    refused = await service.client.post(f"/v1/event/{event_id}/replay/", json={"stage": "relate"})
    assert (refused.status_code, "deleted with its scope" in error_of(refused)) == (409, True)
    await engine.drain()
    options = {"include": ["facts", "turns"], "keyword_search": True, "threshold": 0}
    assert await service.search("Berlin", **options) == []


async def test_partial_graphs_come_back_at_once_on_request(service: Service) -> None:
    engine = service.engine
    [failed] = await unrelated(engine, "I live in Berlin.")
    [partial] = await unrelated(engine, "I like chess.")
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(events).where(events.c.id == partial).values(graph_status="PARTIAL")
        )
    body = {"stage": "relate", "graph_status": "PARTIAL"}
    answer = await service.client.post("/v1/events/replay/", json=body)
    assert answer.json() == {"replayed": 1, "event_ids": [str(partial)]}
    await engine.drain()
    assert (await engine.event(partial)).graph_status == "SUCCEEDED"
    assert (await engine.event(failed)).graph_status == "FAILED"


async def test_graphs_that_fail_again_come_back_after_the_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "MOST_REPLAYS", 1)
    [first] = await unrelated(engine, "I live in Berlin.")
    [second] = await unrelated(engine, "I like chess.")
    engine.with_model(NoGraph())
    wanted = EventFilter(graph_status=GraphStatus.FAILED)
    for expected in (first, second, first):
        replayed = await replay_all(
            engine.project.id,
            wanted,
            dead_letters=engine.ledger.dead_letters,
            dispatcher=engine.hints,
        )
        assert list(replayed) == [expected]
        await engine.drain()


async def test_a_batch_with_released_outputs_is_not_replayed(engine: Engine) -> None:
    [event_id] = await unrelated(engine, "I live in Berlin.")
    async with engine.ledger.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE stage_runs SET output = NULL")
    with pytest.raises(Conflict, match="not kept any more"):
        await again(engine, event_id)
    assert (await engine.event(event_id)).graph_status == "FAILED"
