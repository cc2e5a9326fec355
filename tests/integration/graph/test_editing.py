"""Edits of entities by people: merge, split, rename, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select, text

from pipeline.ledger.tables import graph_receipts
from pipeline.stores import Ledger
from tests.integration.graph.test_reads import drawn, exported, graph, now
from tests.support.api_service import MAYA, Service, error_of, serving

ENTITY = "/v1/graph/entities/"
EDGES = (
    ("Ines", "works_at", "Bosch"),
    ("Nes", "lives_in", "Porto"),
    ("Inesita", "has_friend", "Kim"),
)


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        await drawn(built, *EDGES)
        yield built


async def ids(service: Service) -> dict[str, str]:
    """Ids of the entities, by the name under which they are shown."""
    answer = await service.client.get("/v1/graph/", params=MAYA)
    rows = answer.json()["results"]
    return {row[end]: row[f"{end}_id"] for row in rows for end in ("source", "target")}


async def act(service: Service, method: str, path: str, status: int = 200, **body: Any) -> Any:
    answer = await service.client.request(method, ENTITY + path, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json() if status == 200 else error_of(answer)


async def test_a_merge_shows_two_entities_as_one_and_a_split_takes_it_back(
    service: Service,
) -> None:
    before, known = sorted(await graph(service)), await ids(service)
    await act(service, "POST", f"{known['Inesita']}/merge/", into=known["Nes"])
    merged = await act(service, "POST", f"{known['Nes']}/merge/", into=known["Ines"])
    assert [member["name"] for member in merged["members"]] == ["Inesita", "Nes"]
    assert sorted(await graph(service)) == [
        "Ines has_friend Kim", "Ines lives_in Porto", "Ines works_at Bosch",
    ]  # fmt: skip
    assert len(await graph(service, entity="nes")) == 3
    refused = await act(service, "POST", f"{known['Nes']}/merge/", 409, into=known["Kim"])
    assert "split it first" in refused
    again = await act(service, "POST", f"{known['Ines']}/merge/", 409, into=known["Nes"])
    assert "one entity already" in again
    split = await act(service, "POST", f"{known['Nes']}/split/")
    assert [member["name"] for member in split["members"]] == ["Inesita"]
    assert (await act(service, "GET", f"{known['Ines']}/"))["members"] == []
    await act(service, "POST", f"{known['Inesita']}/split/")
    assert sorted(await graph(service)) == before
    assert "not merged" in await act(service, "POST", f"{known['Ines']}/split/", 409)


async def merges(service: Service, **times: str) -> dict[str, tuple[str | None, str | None]]:
    """The entity that each one is merged into in an export, and the reason."""
    rows = [row for row in await exported(service, **times) if row["kind"] == "entity"]
    names = {row["id"]: row["name"] for row in rows}
    return {
        row["name"]: (names[row["merged_into"]], row["merge_reason"])
        for row in rows
        if row["merged_into"]
    }


async def test_a_split_does_not_change_what_was_merged_before_it(service: Service) -> None:
    known = await ids(service)
    before = await now(service)
    times = {}
    for into in ("Ines", "Kim", "Ines"):
        await act(service, "POST", f"{known['Nes']}/merge/", into=known[into])
        times[await now(service)] = {"Nes": (into, "Merged by request.")}
        await act(service, "POST", f"{known['Nes']}/split/")
        times[await now(service)] = {}
    assert await merges(service) == await merges(service, as_of=before) == {}
    for at, expected in times.items():
        assert await merges(service, as_of=at) == expected, at
    # The reason of a merge may name the entity that is deleted.
    await act(service, "DELETE", f"{known['Ines']}/")
    for at, expected in times.items():
        kim = {name: into for name, into in expected.items() if into[0] == "Kim"}
        assert await merges(service, as_of=at) == kim, at


MOST_PAST = 100
FLIPS = {
    "past_merges": (
        "UPDATE entities SET merged_into = id, merged_at = now() WHERE name = 'Nes'",
        "UPDATE entities SET merged_into = NULL, merged_at = NULL WHERE name = 'Nes'",
    ),
    "past_ends": (
        "UPDATE relations SET expired_at = now() WHERE relation = 'works_at'",
        "UPDATE relations SET expired_at = NULL WHERE relation = 'works_at'",
    ),
}


@pytest.mark.parametrize("column", FLIPS)
async def test_the_past_of_a_row_that_changes_again_and_again_is_bounded(
    service: Service, column: str
) -> None:
    table = {"past_merges": "entities", "past_ends": "relations"}[column]
    read = text(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
    times = []
    for _ in range(MOST_PAST + 5):
        for statement in FLIPS[column]:
            async with service.engine.ledger.engine.begin() as connection:
                await connection.execute(text(statement))
                times.append(await connection.scalar(text("SELECT now()")))
    async with service.engine.ledger.engine.connect() as connection:
        [past] = (await connection.scalars(read)).all()
    withdrawn = times[1::2][-MOST_PAST:]
    assert [datetime.fromisoformat(row["replaced_at"]) for row in past] == withdrawn


async def test_a_merged_entity_is_the_other_one_for_new_facts(service: Service) -> None:
    known = await ids(service)
    await act(service, "POST", f"{known['Nes']}/merge/", into=known["Ines"])
    await drawn(service, ("Ines", "lives_in", "Acme Town"))
    assert "Ines lives_in Porto" not in await graph(service)


async def test_entities_of_other_ids_are_not_merged(service: Service) -> None:
    known = await ids(service)
    await drawn(service, ("Ines", "works_at", "Acme"), user_id="noor")
    answer = await service.client.get("/v1/graph/", params={"user_id": "noor"})
    theirs = answer.json()["results"][0]["source_id"]
    assert "same ids" in await act(service, "POST", f"{known['Ines']}/merge/", 409, into=theirs)


async def test_a_renamed_entity_is_found_by_its_new_name(service: Service) -> None:
    known = await ids(service)
    row = await act(service, "PUT", f"{known['Ines']}/", name="Ines Costa", type="human")
    assert (row["name"], row["type"]) == ("Ines Costa", "person")
    assert await graph(service, entity="ines costa") == ["Ines Costa works_at Bosch"]
    await act(service, "PUT", f"{known['Ines']}/", 400, name="!?")


async def test_a_deleted_entity_leaves_nothing_in_the_graph(service: Service) -> None:
    known = await ids(service)
    await act(service, "POST", f"{known['Nes']}/merge/", into=known["Ines"])
    assert (await act(service, "DELETE", f"{known['Ines']}/"))["relations"] == 2
    assert await graph(service) == ["Inesita has_friend Kim"]
    await act(service, "GET", f"{known['Nes']}/", 404)
    async with service.engine.ledger.engine.connect() as connection:
        lines = (await connection.scalars(select(graph_receipts.c.source))).all()
    assert set(lines) == {"Inesita"}
