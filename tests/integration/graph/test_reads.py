"""Reads of the graph: paths of a search, the neighbourhood of an entity, and both clocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import func, select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import StoreUnavailable
from pipeline.stores import Ledger
from tests.integration.ingest.test_graph import Edge, Scripted
from tests.support.api_service import LIST, MAYA, SEARCH, Service, serving

GRAPH = "/v1/graph/"


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def drawn(service: Service, *edges: Edge, **body: object) -> None:
    """Add a fact for each edge; its words are those of the edge."""
    for number, edge in enumerate(edges):
        service.engine.with_model(Scripted({"": [edge]}, KINDS))
        await service.add(f"I like number{number}{edge[2]}.", **body)


KINDS = {"Bosch": "organization", "Stuttgart": "place", "Porto": "place", "Acme": "organization"}
FAMILY = (
    ("User", "has_sister", "Ines"),
    ("Ines", "works_at", "Bosch"),
    ("Bosch", "located_in", "Stuttgart"),
    ("User", "has_friend", "Kim"),
    ("Kim", "lives_in", "Porto"),
)


def texts(relations: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{row['source']} {row['relationship']} {row['target']}" for row in relations]


async def graph(service: Service, **params: object) -> list[str]:
    answer = await service.client.get(GRAPH, params=MAYA | params)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return texts(answer.json()["results"])


async def searched(service: Service, query: str, **body: object) -> dict[str, Any]:
    answer = await service.client.post(SEARCH, json={"query": query, "filters": MAYA} | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize(
    ("query", "relation", "path"),
    [
        ("Where does Ines work?", "Ines works_at Bosch", []),
        ("Which company does my sister work for?", "Ines works_at Bosch",
         ["User has_sister Ines"]),
        ("In which city is the employer of my sister located?", "Bosch located_in Stuttgart",
         ["User has_sister Ines", "Ines works_at Bosch"]),
        ("In which town does my friend live?", "Kim lives_in Porto", ["User has_friend Kim"]),
    ],
)  # fmt: skip
async def test_a_search_returns_the_relation_with_the_path_to_it(
    service: Service, query: str, relation: str, path: list[str]
) -> None:
    await drawn(service, *FAMILY)
    relations = (await searched(service, query))["relations"]
    first = relations[0]
    assert (texts([first]), texts(first["path"])) == ([relation], path)
    assert len({row["id"] for row in relations}) == len(relations)


async def test_a_relation_of_a_result_is_returned_without_its_name(service: Service) -> None:
    await service.add("My sister Ines lives in Porto.")
    answer = await searched(service, "Porto")
    assert "Ines lives_in Porto" in texts(answer["relations"])
    quiet = await searched(service, "Porto", enable_graph=False)
    assert quiet["relations"] == []


async def test_the_neighbourhood_of_an_entity_grows_with_its_hops(service: Service) -> None:
    await drawn(service, *FAMILY)
    near = [await graph(service, entity="ines", hops=hops) for hops in (1, 2, 3)]
    assert set(near[0]) == {"User has_sister Ines", "Ines works_at Bosch"}
    assert set(near[1]) - set(near[0]) == {"Bosch located_in Stuttgart", "User has_friend Kim"}
    assert set(near[2]) - set(near[1]) == {"Kim lives_in Porto"}
    assert await graph(service, entity="unknown") == []


async def test_pages_hold_each_relation_once(service: Service) -> None:
    await drawn(service, *FAMILY)
    pages = [
        await graph(service, page=page, page_size=2, **more)
        for more in ({}, {"entity": "me", "hops": 3})
        for page in (1, 2, 3)
    ]
    rows = [row for page in pages for row in page]
    assert sorted(rows[:5]) == sorted(rows[5:]) == sorted(" ".join(edge) for edge in FAMILY)


async def now(service: Service) -> str:
    async with service.engine.ledger.engine.connect() as connection:
        time: datetime = await connection.scalar(select(func.clock_timestamp()))  # type: ignore[assignment]
    return time.astimezone(UTC).isoformat()


async def test_both_clocks(service: Service) -> None:
    """The employer in March, and the employer that was believed before the second message."""
    await service.add("I work at Acme.", timestamp="2026-02-01T10:00:00Z")
    before = await now(service)
    await service.add("I work at Bosch now.", timestamp="2026-05-01T10:00:00Z")
    assert await graph(service, entity="me") == ["User works_at Bosch"]
    assert await graph(service, entity="me", valid_at="2026-03-15") == ["User works_at Acme"]
    assert await graph(service, entity="me", valid_at="2026-01-15") == []
    assert await graph(service, entity="me", as_of=before) == ["User works_at Acme"]
    assert await graph(service, as_of=before) == ["User works_at Acme"]
    assert await graph(service, as_of=before, valid_at="2026-06-01") == ["User works_at Acme"]
    assert await graph(service, valid_at="2026-06-01") == ["User works_at Bosch"]
    assert await graph(service, as_of="2020-01-01") == []


async def test_an_undo_does_not_change_what_was_known_before_it(service: Service) -> None:
    """Between the second message and its undo, only Bosch was known as the present employer."""
    await service.add("I work at Acme.", timestamp="2026-02-01T10:00:00Z")
    event_id = await service.add("I work at Bosch now.", timestamp="2026-05-01T10:00:00Z")
    between = await now(service)
    shown = await exported(service, as_of=between)
    assert await graph(service, as_of=between) == ["User works_at Bosch"]
    assert (await service.client.post(f"/v1/event/{event_id}/undo/")).status_code == 200
    after = await now(service)
    for entity in ({}, {"entity": "me"}):
        assert await graph(service, as_of=between, **entity) == ["User works_at Bosch"]
        known = {"as_of": between, **entity}
        assert await graph(service, valid_at="2026-03-15", **known) == ["User works_at Acme"]
        assert await graph(service, valid_at="2026-06-01", **known) == ["User works_at Bosch"]
        for times in ({}, {"as_of": after}, {"valid_at": "2026-06-01"}):
            assert await graph(service, **times, **entity) == ["User works_at Acme"]
    edges = (await searched(service, "Where do I work?", as_of=between))["relations"]
    assert [edge["target"] for edge in edges] == ["Bosch"]
    assert await exported(service, as_of=between) == shown


async def test_another_scope_and_another_project_see_nothing(
    service: Service, ledger: Ledger
) -> None:
    await drawn(service, *FAMILY)
    assert await graph(service, user_id="noor", entity="ines") == []
    page = (await service.client.get(GRAPH, params=MAYA)).json()["results"]
    async with serving(ledger) as stranger:
        assert await graph(stranger, entity="ines") == []
        assert await graph(stranger, entity_id=page[0]["source_id"]) == []
    assert len(await graph(service, entity_id=page[0]["source_id"])) >= 1


@pytest.mark.parametrize(
    "params", [{}, {"user_id": "maya", "hops": 4}, {"user_id": "maya", "as_of": "yesterday"}]
)
async def test_an_unusable_question_is_refused(service: Service, params: dict[str, str]) -> None:
    assert (await service.client.get(GRAPH, params=params)).status_code == 400


async def test_a_graph_that_does_not_answer_leaves_a_degraded_search(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.add("I live in Berlin.")

    async def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(type(service.engine.ledger.graph), "near", broken)
    answer = await searched(service, "Berlin")
    assert (len(answer["results"]), answer["relations"], answer["degraded"]) == (1, [], True)
    assert answer["degraded_parts"] == ["relations"]


async def exported(service: Service, **params: object) -> list[dict[str, Any]]:
    answer = await service.client.get(f"{GRAPH}export/", params=MAYA | params)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def test_an_export_has_every_entity_and_relation_as_of_a_time(service: Service) -> None:
    await service.add("I live in Berlin.")
    [before] = [row for row in await exported(service) if row["kind"] == "relation"]
    await service.add("I moved to Oslo. My name is Nadia.")
    rows = await exported(service)
    names = {row["id"]: row for row in rows if row["kind"] == "entity"}
    edges = {names[row["target_id"]]["name"]: row for row in rows if row["kind"] == "relation"}
    assert [row["kind"] for row in rows] == sorted(row["kind"] for row in rows)
    assert {row["name"] for row in names.values()} == {"User", "Berlin", "Oslo", "Nadia"}
    [nadia] = [row for row in names.values() if row["name"] == "Nadia"]
    assert names[nadia["merged_into"]]["name"] == "User"
    berlin, oslo = edges["Berlin"], edges["Oslo"]
    assert (berlin["id"], berlin["ended_by"]) == (before["id"], oslo["event_id"])
    assert berlin["valid_to"] == oslo["valid_from"]
    assert (oslo["expired_at"], before["expired_at"]) == (None, None)
    [then] = [
        row
        for row in await exported(service, as_of=before["created_at"])
        if row["kind"] == "relation"
    ]
    assert then == before
    pages = [
        row
        for page in range(1, len(rows) + 1)
        for row in await exported(service, page=page, page_size=1)
    ]
    assert pages == rows


async def test_an_export_needs_an_id(service: Service) -> None:
    assert (await service.client.get(f"{GRAPH}export/")).status_code == 400


async def test_the_graph_shows_no_relation_of_an_expired_memory(service: Service) -> None:
    await drawn(service, *FAMILY[:1])
    of_2019 = {"timestamp": 1_551_398_400, "expiration_date": "2020-01-01"}
    await drawn(service, FAMILY[1], **of_2019)
    await drawn(service, *FAMILY[2:4])
    near = ["User has_sister Ines", "User has_friend Kim"]
    assert await graph(service, entity="Ines", hops=3) == near
    every = ["User has_friend Kim", "Bosch located_in Stuttgart", "User has_sister Ines"]
    assert await graph(service) == every
    pages = []
    for page in (1, 2, 3):
        params: dict[str, Any] = MAYA | {"page": page, "page_size": 1}
        pages.append((await service.client.get(GRAPH, params=params)).json())
    assert [texts(page["results"]) for page in pages] == [[text] for text in every]
    assert {page["count"] for page in pages} == {3}
    assert pages[-1]["next"] is None
    # On request, and at a time before the date.
    expired = "Ines works_at Bosch"
    for params in ({"show_expired": True}, {"valid_at": "2019-05-01"}):
        assert expired in await graph(service, entity="Ines", **params)
        assert expired in await graph(service, **params)
    [row] = [r for r in await listed(service) if r["expiration_date"]]
    await service.client.put(f"/v1/memories/{row['id']}/", json={"expiration_date": None})
    assert expired in await graph(service)


async def test_an_expired_statement_of_the_past_has_no_relation_either(service: Service) -> None:
    service.engine.with_model(RulesModel())
    days = {day: int(datetime(2026, 3, day, tzinfo=UTC).timestamp()) for day in (5, 10)}
    await service.add("I live in Oslo.", timestamp=days[10])
    await service.add("I moved to Rome.", timestamp=days[5], expiration_date="2020-01-01")
    body = {"filters": MAYA, "valid_at": "2026-03-06"}
    for shown in ({}, {"show_expired": True}):
        listed = (await service.client.post(LIST, json=body | shown)).json()["results"]
        assert len(listed) == len(shown)
        assert len(await graph(service, valid_at="2026-03-06", **shown)) == len(shown)


async def test_the_date_that_a_memory_had_at_a_time_counts_for_its_relations(
    service: Service,
) -> None:
    service.engine.with_model(RulesModel())
    days = {day: int(datetime(2026, 3, day, tzinfo=UTC).timestamp()) for day in (5, 10)}
    await service.add("I live in Oslo.", timestamp=days[5])
    async with service.engine.ledger.engine.connect() as connection:
        then = (await connection.scalars(select(func.clock_timestamp()))).one().isoformat()
    await service.add("I moved to Rome.", timestamp=days[10], expiration_date="2020-01-01")
    oslo, rome = "User lives_in Oslo", "User lives_in Rome"
    for at, shown in (
        ({}, []),
        ({"as_of": then}, [oslo]),
        ({"valid_at": "2026-03-06"}, [oslo]),
        ({"valid_at": "2026-03-11"}, []),
    ):
        assert await graph(service, **at) == shown
        assert await graph(service, entity="User", **at) == shown
        query = {"query": "Where do I live?", "filters": MAYA, **at}
        relations = (await service.client.post(SEARCH, json=query)).json()["relations"]
        assert texts(relations) == shown
        body = {"filters": MAYA, **at}
        assert len((await service.client.post(LIST, json=body)).json()["results"]) == len(shown)
    [row] = await listed(service)
    await service.client.put(f"/v1/memories/{row['id']}/", json={"expiration_date": None})
    assert await graph(service) == await graph(service, valid_at="2026-03-11") == [rome]
    assert await graph(service, as_of=then) == [oslo]


async def test_a_search_returns_no_relation_of_an_expired_memory(service: Service) -> None:
    await drawn(service, FAMILY[0])
    await drawn(service, FAMILY[1], expiration_date="2020-01-01")
    sister, work = (" ".join(edge) for edge in FAMILY[:2])
    query = "Where does Ines work?"
    assert texts((await searched(service, query))["relations"]) == [sister]
    shown = (await searched(service, query, show_expired=True))["relations"]
    assert set(texts(shown)) == {sister, work}
    [row] = [r for r in (await listed(service)) if r["expiration_date"]]
    await service.client.put(f"/v1/memories/{row['id']}/", json={"expiration_date": None})
    assert set(texts((await searched(service, query))["relations"])) == {sister, work}


async def listed(service: Service) -> list[dict[str, Any]]:
    body = {"filters": MAYA, "show_expired": True}
    return list((await service.client.post(LIST, json=body)).json()["results"])


async def test_a_late_dislike_ends_when_its_memory_is_superseded(service: Service) -> None:
    """The graph has no relation of the later statement, which was stored without one."""
    await service.add("I like tennis.", timestamp="2026-05-01T10:00:00Z", mode="append")
    await service.add("I no longer like tennis.", timestamp="2026-02-01T10:00:00Z")
    assert [row["memory"] for row in await service.listed()] == ["User likes tennis"]
    assert await graph(service) == []
    assert await graph(service, valid_at="2026-03-15") == ["User dislikes tennis"]
    assert await graph(service, valid_at="2026-06-01") == []
