"""Replay of a whole scope into a shadow: isolated, compared, then switched on or discarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer, StoreUnavailable
from pipeline.domain.events import StageName
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import metadata
from pipeline.models.override import ModelFactory
from pipeline.vector_index.index import VectorIndex
from tests.support.api_service import MAYA, Service, error_of
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import LEASE_S, Engine
from tests.support.replaying import REPLAYS, Tagged, begun, look, replayed, switch, texts


async def rows(engine: Engine, *, of: UUID | None = None) -> dict[str, int]:
    """Number of rows of each table, in one project if `of` names it."""
    counts = {}
    await engine.ledger.balance.fold()
    async with engine.ledger.engine.connect() as connection:
        for name, table in metadata.tables.items():
            # Collections have a row each, not for each project; the audit log grows with each
            # request, and samples with each minute.
            if name in ("vector_collections", "audit_entries", "queue_samples"):
                continue
            if of is None or "project_id" in table.c:
                query = select(func.count()).select_from(table)
                query = query if of is None else query.where(table.c.project_id == of)
                counts[name] = await connection.scalar(query) or 0
    return counts


async def figures(service: Service) -> dict[str, Any]:
    """`/v1/stats/`, without the search figures, which this test changes itself."""
    stats = dict((await service.client.get("/v1/stats/")).json())
    return {name: value for name, value in stats.items() if "retrieval" not in name}


async def test_nothing_of_a_replay_shows_until_it_is_switched_on(service: Service) -> None:
    """Not in lists, searches, events, relations or figures, and not in the index."""
    await service.add("Likes tea.", "Likes rum.")
    before = (
        await texts(service),
        await figures(service),
        (await service.client.get("/v1/events/")).json(),
        [hit["id"] for hit in await service.search("What does she like?")],
        await rows(service.engine, of=service.engine.project.id),
    )
    replay = await replayed(service, custom_instructions="Say it")
    assert (replay["status"], replay["accepted"], replay["succeeded"]) == ("READY", 1, 1)
    after = (
        await texts(service),
        await figures(service),
        (await service.client.get("/v1/events/")).json(),
        [hit["id"] for hit in await service.search("What does she like?")],
        await rows(service.engine, of=service.engine.project.id),
    )
    assert after[:4] == before[:4]
    # The search above adds a row to `books`.
    assert after[4] == before[4] | {"shadows": 1, "books": after[4]["books"]}
    books = await service.engine.ledger.balance.totals(ProjectId(UUID(replay["id"])))
    assert (books.balanced, books.accepted, books.memories) == (True, 1, 2)


async def test_new_instructions_reach_the_model_before_an_events_own(service: Service) -> None:
    await service.add("Likes tea.", custom_instructions="Old")
    await service.add("Likes rum.")
    service.engine.with_model(model := Tagged())
    await replayed(service, custom_instructions="New")
    assert set(model.seen) == {"New"}
    model.seen.clear()
    await replayed(service)
    assert model.seen == ["Old", None]


async def test_a_diff_says_what_would_come_go_and_read_otherwise(service: Service) -> None:
    await service.add("Likes tea.")
    await service.add("Likes rum.")
    person = await service.add("Likes gin.")
    [gin] = (await service.event(person))["results"]
    await service.client.delete(f"/v1/memories/{gin['id']}/")
    service.engine.with_model(Tagged(tag="She"))
    replay = await replayed(service)
    diff = await look(service, replay["id"], "diff/")
    assert diff["counts"] == {
        "same": 0,
        "changed": 2,
        "only_live": 0,
        "only_replay": 1,
        "relations_added": diff["counts"]["relations_added"],
        "relations_removed": diff["counts"]["relations_removed"],
        "edits_lost": 0,
    }
    assert [(pair["memory"], pair["becomes"]["memory"]) for pair in diff["changed"]] == [
        ("Likes tea.", "She Likes tea."),
        ("Likes rum.", "She Likes rum."),
    ]
    assert [row["event_id"] for row in diff["only_replay"]] == [person]


async def test_a_diff_waits_for_the_replay_to_end(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await begun(service)
    assert replay["status"] == "RUNNING"
    answer = await service.client.get(f"{REPLAYS}{replay['id']}/diff/")
    assert answer.status_code == 409
    assert "0 of 1 events have ended" in error_of(answer)
    assert (await switch(service, replay["id"])).status_code == 409


async def test_a_graph_replayed_late_does_not_change_a_replays_order(service: Service) -> None:
    @dataclass
    class NoGraph(RulesModel):
        async def relate(self, *_: Any) -> Any:
            raise MalformedAnswer("no JSON")

    engine = service.engine
    engine.with_model(NoGraph())
    first = await service.add("I live in Berlin.")
    engine.with_model(RulesModel())
    await service.add("I moved to Oslo.")
    await service.client.post(f"/v1/event/{first}/replay/", json={"stage": "relate"})
    await engine.drain()
    replay = await replayed(service)
    assert (await look(service, replay["id"], "diff/"))["counts"]["same"] == 1
    assert (await switch(service, replay["id"])).status_code == 200
    [memory] = await service.listed(**MAYA)
    assert "Oslo" in memory["memory"]


async def test_a_discarded_replay_leaves_nothing_behind(service: Service) -> None:
    await service.add("I live in Berlin. My sister Anna lives in Oslo.")
    await service.engine.services.index.catch_up()
    before = await rows(service.engine)
    replay = await replayed(service, custom_instructions="New")
    assert (await rows(service.engine))["memories"] > before["memories"]
    answer = await service.client.delete(f"{REPLAYS}{replay['id']}/")
    assert answer.status_code == 200
    assert await rows(service.engine) == before
    for name in await service.engine.vectors.list_cols():
        records = await service.engine.vectors.list(
            name, where={"project_id": replay["id"]}, limit=9
        )
        assert records == [], name
    assert (await service.client.get(f"{REPLAYS}{replay['id']}/")).status_code == 404


@pytest.mark.parametrize("stage", list(StageName))
async def test_a_replay_discarded_under_its_worker_stops_it(
    service: Service, stage: StageName
) -> None:
    engine = service.engine
    await service.add("I live in Berlin.", "I like tea.")
    await service.add("I moved to Oslo.")  # so that there is something to decide
    before = await rows(engine)
    replay = await begun(service)
    hint = await engine.run_until(stage)
    activation, _ = await engine.claim(hint)
    await service.client.delete(f"{REPLAYS}{replay['id']}/")
    await engine.pass_time(LEASE_S + 1)
    assert await engine.sweep() == 0
    engine.hints.waiting.append(replace(hint, fence=activation.fence))
    await engine.drain()
    assert await rows(engine) == before


async def test_a_replay_is_not_half_discarded_while_the_index_is_down(service: Service) -> None:
    await service.add("Likes tea.")
    replay = await replayed(service)
    stores, engine = service.api.stores, service.engine

    class Down(type(engine.vectors)):  # type: ignore[misc]
        async def delete(self, name: str, ids: Sequence[UUID]) -> None:
            raise StoreUnavailable("refused")

    away = VectorIndex(Down(), engine.ledger.memory_vectors, stores.embedder, buckets=4)
    service.app.state.api = replace(service.api, stores=replace(stores, index=away))
    assert (await service.client.delete(f"{REPLAYS}{replay['id']}/")).status_code == 503
    service.app.state.api = replace(service.api, stores=stores)
    assert (await service.client.delete(f"{REPLAYS}{replay['id']}/")).status_code == 200


class OtherHash(HashEmbedder):
    """Embedder with other vectors, of another length."""

    @property
    def name(self) -> str:
        return "openai/other"

    async def dimensions(self) -> int:
        return 8

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        return [list(vector[:8]) for vector in await super().embed(texts)]


async def test_other_models_are_asked_and_their_vectors_kept_apart(service: Service) -> None:
    engine = service.engine
    built: list[str] = []

    def build(name: str) -> RulesModel:
        built.append(name)
        return Tagged(tag="Big:")

    model_factory = ModelFactory.of(build, lambda name: OtherHash())
    engine.services = replace(engine.services, model_factory=model_factory)
    await service.add("I live in Berlin.")
    await service.add("I like tea.")
    mine = await engine.vectors.list_cols()
    replay = await replayed(service, llm_model="openai/big", embedder_model="openai/other")
    await replayed(service, llm_model="openai/big")
    assert built == ["openai/big"]  # the model is built once
    [other] = [name for name in await engine.vectors.list_cols() if "openai-other" in name]
    info = await engine.vectors.col_info(other)
    assert info is not None
    assert (info.dimensions, info.embedder, info.count) == (8, "openai/other", 2)
    assert set(mine) < set(await engine.vectors.list_cols())
    assert (await switch(service, replay["id"])).status_code == 200
    assert await texts(service) == ["Big: I like tea.", "Big: I live in Berlin."]
    hits = await service.search("Where does Maya live? Berlin", threshold=0.1)
    assert hits[0]["memory"] == "Big: I live in Berlin."
    assert await engine.vectors.list(other, where={}, limit=9) == []
