"""Conflicts of memories in the graph: open in both, and resolved in both."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from pipeline.stores import Ledger
from tests.integration.graph.stories import (
    Attentive,
    Stated,
    drawn,
    lives,
    relations,
    tell,
    works,
)
from tests.support.api_service import Service, serving
from tests.support.disagreements import UNDECIDED

CONFLICTS = "/v1/conflicts/"
USER = "maya"
PLACES = ("Lyon", "Graz", "Bern", "Riga", "Porto", "Turin")
FIRMS = ("Siemens", "Bosch", "Airbus", "Philips", "Nokia", "Fiat")


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def open_conflicts(service: Service) -> list[dict[str, Any]]:
    answer = await service.client.get(CONFLICTS, params={"state": "OPEN"})
    return list(answer.json()["results"])


async def resolve(service: Service, conflict_id: str, **body: object) -> str:
    answer = await service.client.post(f"{CONFLICTS}{conflict_id}/resolve/", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["resolution_event_id"])


async def undo(service: Service, event_id: str) -> None:
    answer = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert answer.status_code == 200, answer.text


async def stated(service: Service, story: Sequence[Stated]) -> tuple[dict[str, str | None], ...]:
    """The statements of the memories and those of the graph, each with its open conflict."""
    by_text = {statement.text: " ".join(statement.edge) for statement in story}
    rows = await service.listed()
    memories = {by_text[r["memory"]]: r["conflict_id"] for r in rows if r["memory"] in by_text}
    graph = {
        f"{row['source']} {row['relationship']} {row['target']}": row["conflict_id"]
        for row in await relations(service, USER)
    }
    return memories, graph


async def agrees(service: Service, story: Sequence[Stated]) -> dict[str, str | None]:
    """Compare the graph with the memories. Returns the relations with their conflicts."""
    memories, graph = await stated(service, story)
    assert graph == memories
    return graph


DISPUTE = (lives("Zoe", "Lyon", 0, "Anna"), lives("Zoe", "Graz", 1, "Ben"))


async def dispute(service: Service, *more: Stated) -> str:
    """Two speakers disagree about a third person. Returns the conflict."""
    service.engine.with_model(Attentive([*DISPUTE, *more]))
    for statement in DISPUTE:
        await tell(service, statement, user_id=USER)
    [conflict] = await open_conflicts(service)
    graph = await agrees(service, DISPUTE)
    assert graph == dict.fromkeys(("Zoe lives_in Lyon", "Zoe lives_in Graz"), conflict["id"])
    return str(conflict["id"])


async def memory_of(service: Service, text: str) -> str:
    return next(str(row["id"]) for row in await service.listed() if row["memory"] == text)


@pytest.mark.parametrize("chosen", DISPUTE, ids=["the first", "the last"])
async def test_the_statement_that_a_person_keeps_is_the_one_in_the_graph(
    service: Service, chosen: Stated
) -> None:
    conflict_id = await dispute(service)
    event_id = await resolve(service, conflict_id, keep=await memory_of(service, chosen.text))
    assert await agrees(service, DISPUTE) == {" ".join(chosen.edge): None}
    await undo(service, event_id)
    graph = await agrees(service, DISPUTE)
    assert set(graph.values()) == {conflict_id}
    assert len(graph) == 2


async def test_both_statements_stay_in_the_graph(service: Service) -> None:
    conflict_id = await dispute(service)
    event_id = await resolve(service, conflict_id, keep="both")
    assert await agrees(service, DISPUTE) == {
        "Zoe lives_in Lyon": None,
        "Zoe lives_in Graz": None,
    }
    await undo(service, event_id)
    assert set((await agrees(service, DISPUTE)).values()) == {conflict_id}


async def test_a_text_that_says_neither_leaves_neither_in_the_graph(service: Service) -> None:
    conflict_id = await dispute(service)
    event_id = await resolve(service, conflict_id, text="It is not known where Zoe lives.")
    assert await agrees(service, DISPUTE) == {}
    await undo(service, event_id)
    assert set((await agrees(service, DISPUTE)).values()) == {conflict_id}


@pytest.mark.parametrize("place", ["Lyon", "Graz", "Bern"])
async def test_a_later_statement_decides_in_the_graph_too(service: Service, place: str) -> None:
    own = lives("Zoe", place, 5, "Zoe")
    await dispute(service, own)
    event_id = await tell(service, own, user_id=USER)
    story = (*DISPUTE, own)
    assert await agrees(service, story) == {f"Zoe lives_in {place}": None}
    await undo(service, event_id)
    assert set(await agrees(service, story)) == {"Zoe lives_in Lyon", "Zoe lives_in Graz"}


async def test_a_statement_taken_back_by_another_speaker_stays_in_the_graph(
    service: Service,
) -> None:
    first, other = UNDECIDED["negation"]
    edge = ("Zoe", "lives_in", "Lyon")
    story = (
        Stated(first.text, edge, 0, "residence", "Anna"),
        Stated(other.text, edge, 1, "residence", "Ben"),
    )
    model = Attentive(story, silent=[other.text])
    service.engine.with_model(model)
    for statement in story:
        await tell(service, statement, user_id=USER)
    [conflict] = await open_conflicts(service)
    [row] = await relations(service, USER)
    assert (row["target"], row["conflict_id"]) == ("Lyon", conflict["id"])
    await resolve(service, conflict["id"], keep=await memory_of(service, other.text))
    assert await drawn(service, USER) == []


@pytest.mark.parametrize("text", ["User likes chess", "User likes tea", "User plays the lute"])
async def test_an_edit_of_a_denial_ends_its_relation(service: Service, text: str) -> None:
    await service.add("I don't like chess.", user_id=USER)
    [row] = await service.listed(user_id=USER)
    assert [edge["relationship"] for edge in await relations(service, USER)] == ["dislikes"]
    await service.client.put(f"/v1/memories/{row['id']}/", json={"text": text})
    assert await relations(service, USER) == []


async def test_an_edit_that_denies_the_same_leaves_its_relation(service: Service) -> None:
    await service.add("I don't like chess.", user_id=USER)
    [row] = await service.listed(user_id=USER)
    text = {"text": "User does not like chess any more"}
    await service.client.put(f"/v1/memories/{row['id']}/", json=text)
    assert [edge["relationship"] for edge in await relations(service, USER)] == ["dislikes"]


async def test_an_edit_that_settles_a_conflict_settles_it_in_the_graph(service: Service) -> None:
    await dispute(service)
    memory_id = await memory_of(service, "Zoe lives in Lyon.")
    body = {"text": "Zoe lives in Graz, near the river."}
    answer = await service.client.put(f"/v1/memories/{memory_id}/", json=body)
    assert answer.status_code == 200, answer.text
    assert await drawn(service, USER) == [("Zoe", "lives_in", "Graz")]


Step = Callable[[Service, random.Random], Coroutine[Any, Any, None]]


async def resolved_somehow(service: Service, dice: random.Random, undone: bool) -> None:
    """Resolve the oldest open conflict in one of the ways, and undo that or not."""
    conflicts = await open_conflicts(service)
    if not conflicts:
        return
    conflict = conflicts[-1]
    standing = [row["memory_id"] for row in conflict["memories"] if row["standing"]]
    bodies: list[Mapping[str, object]] = [
        {"keep": "both"},
        {"text": f"It is open what holds, number {dice.random()}."},
        *({"keep": memory_id} for memory_id in standing),
    ]
    event_id = await resolve(service, conflict["id"], **dice.choice(bodies))
    if undone:
        await undo(service, event_id)


# Stories that failed before, and the first of the others.
STORIES = (*range(32), 60, 63, 71, 77, 99, 103, 176)


@pytest.mark.parametrize("seed", STORIES)
async def test_no_graph_contradicts_its_memories_in_any_story(service: Service, seed: int) -> None:
    dice = random.Random(seed)
    values = [(lives, place) for place in PLACES] + [(works, firm) for firm in FIRMS]
    speakers = ("Anna", "Ben", "Zoe", None)
    story = [
        make(dice.choice(("Zoe", "Tom")), value, day, dice.choice(speakers))
        for day, (make, value) in enumerate(dice.sample(values, 8))
    ]
    service.engine.with_model(Attentive(story))
    for statement in dice.sample(story, len(story)) if seed % 2 else story:
        event_id = await tell(service, statement, user_id=USER)
        await agrees(service, story)
        if dice.random() < 0.15:
            await undo(service, event_id)
            await agrees(service, story)
        if dice.random() < 0.5:
            await resolved_somehow(service, dice, undone=dice.random() < 0.3)
            await agrees(service, story)
