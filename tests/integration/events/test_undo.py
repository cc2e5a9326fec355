"""Undo: an event's changes are reverted as new states, or refused if a later one is in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import AddOptions, Instructions, StageName
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.messages import Message, Role
from pipeline.domain.usage import Answer
from pipeline.events.undo import Undone, _states
from pipeline.ledger import tables
from pipeline.memories.editing import MemoryEdit
from pipeline.memories.service import edit
from pipeline.vector_index.index import A_PIECE
from tests.support.api_service import MAYA, Service, assert_vectors_fit, error_of, serving
from tests.support.engine import Engine


@dataclass
class Script(RulesModel):
    """`tea.` adds, `tea. > rum.` updates, `no longer tea.` removes."""

    async def extract(self, request: Any) -> Answer[tuple[Fact, ...]]:
        return Answer(
            tuple(Fact(sourced.message.content, sourced.source) for sourced in request.messages)
        )

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        by_text = {neighbour.text: neighbour.memory_id for neighbour in neighbours}
        return Answer(tuple(_decision(n, fact.text, by_text) for n, fact in enumerate(facts)))


def _decision(place: int, text: str, by_text: dict[str, UUID]) -> Decision:
    old, changes, new = text.partition(" > ")
    if changes:
        return Decision(place, Outcome.UPDATE, "Told.", text=new, memory_id=by_text[old])
    if text.startswith("no longer "):
        return Decision(
            place, Outcome.DELETE, "Told.", memory_id=by_text[text.removeprefix("no longer ")]
        )
    return Decision(place, Outcome.ADD, "Told.", text=text)


@pytest.fixture
def scripted(engine: Engine) -> Engine:
    engine.with_model(Script())
    return engine


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as built:
        built.engine.with_model(Script())
        yield built


async def does(engine: Engine, *texts: str, **options: Any) -> UUID:
    event_id = await engine.add(*texts, options=AddOptions(**options))
    await engine.drain()
    assert (await engine.event(event_id)).status == "SUCCEEDED"
    return event_id


async def stored(engine: Engine) -> list[str]:
    return sorted(await engine.texts())


async def memory_of(engine: Engine, event_id: UUID) -> UUID:
    memory_id = (await engine.event(event_id)).receipt[0].memory_id
    assert memory_id is not None
    return memory_id


async def relations(engine: Engine) -> set[tuple[str, str, str]]:
    edges = await engine.relations("user berlin munich")
    return {(edge.source, edge.relation, edge.destination) for edge in edges}


async def test_what_an_event_added_goes_and_its_history_stays(scripted: Engine) -> None:
    event_id = await does(scripted, "tea.", "rum.")
    undone = await scripted.undo(event_id)
    assert (len(undone.gone), undone.back, undone.skipped) == (2, [], {})
    assert await stored(scripted) == []
    history = await scripted.ledger.histories.of(scripted.project.id, undone.gone[0])
    assert [entry.event for entry in history] == ["ADD", "DELETE"]
    assert history[-1].reason == f"Undone: event {event_id}."
    assert (await scripted.event(event_id)).undone_at == undone.at


async def test_what_it_changed_and_deleted_returns_as_it_was(scripted: Engine) -> None:
    first = await does(
        scripted, "tea.", "rum.", metadata={"n": 1}, expiration_date=date(2031, 1, 1)
    )
    before = await scripted.ledger.memories.get(
        scripted.project.id, await memory_of(scripted, first)
    )
    event_id = await does(
        scripted,
        "tea. > jam.",
        "no longer rum.",
        metadata={"m": 2},
        expiration_date=date(2032, 2, 2),
    )
    undone = await scripted.undo(event_id)
    assert (undone.gone, len(undone.back)) == ([], 2)
    assert await stored(scripted) == ["rum.", "tea."]
    after = await scripted.ledger.memories.get(scripted.project.id, before.id)
    assert (
        after.text,
        after.metadata,
        after.expiration_date,
        after.event_id,
        after.valid_from,
    ) == (
        before.text,
        before.metadata,
        before.expiration_date,
        before.event_id,
        before.valid_from,
    )
    assert after.version == 3


@pytest.mark.parametrize("way", ["event", "delete_all"])
async def test_the_source_of_an_edited_memory_returns(service: Service, way: str) -> None:
    """A person's change has no message; the memory keeps the one that it was extracted from."""
    await does(service.engine, "rum.", "tea.")
    path = f"/v1/memories/{await id_of(service, 'tea.')}/"
    await service.client.put(path, json={"metadata": {"n": 1}})
    before = (await service.client.get(path)).json()
    if way == "event":
        event_id = await does(service.engine, "tea. > jam.")
    else:
        answer = await service.client.delete("/v1/memories/", params=MAYA)
        event_id = UUID(answer.json()["event_id"])
    await service.engine.undo(event_id)
    after = (await service.client.get(path)).json()
    own = dict.fromkeys(("version", "updated_at"))
    assert after | own == before | own
    listed = await service.client.get("/v1/memories/user/maya/")
    inputs = {row["id"]: row["input"] for row in listed.json()["results"]}
    assert [message["content"] for message in inputs[before["id"]]] == ["tea."]


async def id_of(service: Service, text: str) -> str:
    """The id of the listed memory with this text."""
    (row,) = [row for row in await service.listed() if row["memory"] == text]
    return str(row["id"])


class Categorized(Script):
    """Facts about rum have the category `spirits`, others `food`."""

    async def extract(self, request: Any) -> Answer[tuple[Fact, ...]]:
        facts = (await super().extract(request)).value
        of = {True: ("spirits",), False: ("food",)}
        return Answer(tuple(replace(fact, categories=of["rum" in fact.text]) for fact in facts))


async def in_category(service: Service, name: str) -> list[str]:
    tree = [{"user_id": "maya"}, {"categories": {"in": [name]}}]
    return [row["memory"] for row in await service.listed(AND=tree)]


async def test_the_categories_return_with_the_text(service: Service) -> None:
    service.engine.with_model(Categorized())
    await does(service.engine, "tea.")
    event_id = await does(service.engine, "tea. > rum.")
    assert await in_category(service, "spirits") == ["rum."]
    await service.engine.undo(event_id)
    assert await in_category(service, "spirits") == []
    assert await in_category(service, "food") == ["tea."]


async def test_categories_of_a_forgotten_state_stay_as_they_are(scripted: Engine) -> None:
    scripted.with_model(Categorized())
    first = await does(scripted, "tea.")
    event_id = await does(scripted, "tea. > rum.")
    async with scripted.ledger.engine.begin() as connection:
        await connection.execute(tables.past_states.delete())
    await scripted.undo(event_id)
    after = await scripted.ledger.memories.get(
        scripted.project.id, await memory_of(scripted, first)
    )
    assert (after.text, after.categories) == ("tea.", ("spirits",))


async def test_undone_memories_are_as_findable_as_before(service: Service) -> None:
    await does(service.engine, "tea.", "rum.")
    event_id = await does(service.engine, "tea. > jam.", "no longer rum.", "pie.")
    answer = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert answer.status_code == 200, answer.text
    await assert_vectors_fit(service)
    assert sorted(row["memory"] for row in await service.listed()) == ["rum.", "tea."]
    index, embedder = service.engine.services.index, service.engine.services.embedder
    [vector] = await embedder.embed(["rum."])
    near = await index.nearest_in_lane(service.engine.scope(), [vector], limit=10)
    assert {str(memory_id) for memory_id in near} == {row["id"] for row in await service.listed()}


async def test_a_text_that_moved_to_another_memory_moves_back(scripted: Engine) -> None:
    await does(scripted, "tea.")
    event_id = await does(scripted, "tea. > rum.", "tea.")
    assert await stored(scripted) == ["rum.", "tea."]
    await scripted.undo(event_id)
    assert await stored(scripted) == ["tea."]


async def test_events_are_undone_one_after_the_other_backwards(scripted: Engine) -> None:
    ids = [await does(scripted, text) for text in ("tea.", "tea. > rum.", "rum. > jam.")]
    seen = []
    for event_id in reversed(ids):
        await scripted.undo(event_id)
        seen.append(await stored(scripted))
    assert seen == [["rum."], ["tea."], []]


async def test_a_second_undo_is_refused_even_at_the_same_moment(scripted: Engine) -> None:
    event_id = await does(scripted, "tea.")
    answers = await asyncio.gather(
        *(scripted.undo(event_id) for _ in range(4)), return_exceptions=True
    )
    assert sorted(isinstance(answer, Conflict) for answer in answers) == [False] + [True] * 3
    with pytest.raises(Conflict, match="undone already"):
        await scripted.undo(event_id, force=True)
    assert len(await scripted.history_rows()) == 2


async def test_a_memory_changed_since_is_named_and_nothing_is_undone(scripted: Engine) -> None:
    event_id = await does(scripted, "tea.", "rum.")
    later = await does(scripted, "tea. > jam.")
    changed = await memory_of(scripted, later)
    with pytest.raises(Conflict, match=f"Memory {changed} was changed since by event {later}"):
        await scripted.undo(event_id)
    assert await stored(scripted) == ["jam.", "rum."]
    assert (await scripted.event(event_id)).undone_at is None


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_what_a_person_did_since_is_in_the_way_too(scripted: Engine, change: str) -> None:
    event_id = await does(scripted, "tea.")
    memory_id = await memory_of(scripted, event_id)
    if change == "edit":
        services = scripted.services
        await edit(
            scripted.project.id,
            [MemoryEdit(memory_id, {"text": "green tea."})],
            editing=scripted.ledger.editing,
            embedder=services.embedder,
            index=services.index,
        )
    else:
        await scripted.ledger.editing.retire(scripted.project.id, [memory_id])
    with pytest.raises(Conflict, match=f"Memory {memory_id} was changed since by a person"):
        await scripted.undo(event_id)
    assert await stored(scripted) == (["green tea."] if change == "edit" else [])


async def test_force_skips_what_was_changed_since_and_lists_it(scripted: Engine) -> None:
    event_id = await does(scripted, "tea.", "rum.")
    changed = await memory_of(scripted, await does(scripted, "tea. > jam."))
    undone = await scripted.undo(event_id, force=True)
    assert list(undone.skipped) == [changed]
    assert await stored(scripted) == ["jam."]


async def test_a_former_text_that_another_memory_holds_now_is_in_the_way(
    scripted: Engine,
) -> None:
    await does(scripted, "tea.")
    event_id = await does(scripted, "tea. > rum.", "pie.")
    holder = await memory_of(scripted, await does(scripted, "tea."))
    with pytest.raises(Conflict, match=f"former text is held by memory {holder}"):
        await scripted.undo(event_id)
    undone = await scripted.undo(event_id, force=True)
    assert (len(undone.gone), len(undone.skipped)) == (1, 1)
    assert await stored(scripted) == ["rum.", "tea."]


async def test_one_event_of_a_batch_is_undone_alone(scripted: Engine) -> None:
    first, second = await scripted.add("tea."), await scripted.add("rum.")
    await scripted.drain()
    assert (await scripted.event(first)).batch_events == 2
    await scripted.undo(first)
    assert await stored(scripted) == ["rum."]
    assert (await scripted.event(second)).undone_at is None


async def test_an_undo_and_a_later_update_at_once_leave_one_clear_order(scripted: Engine) -> None:
    """Either the update blocks the undo, or the memory is gone and the update becomes an add."""
    for turn in range(10):
        tea, rum = f"tea {turn}.", f"rum {turn}."
        event_id = await does(scripted, tea)
        later = await scripted.add(f"{tea} > {rum}")
        await scripted.run_until(StageName.APPLY)
        answer, _ = await asyncio.gather(
            scripted.undo(event_id), scripted.step(), return_exceptions=True
        )
        await scripted.drain()
        [(outcome, text)] = await scripted.outcomes(later)
        refused = isinstance(answer, Conflict)
        # An update whose memory is gone stores the fact's own text.
        assert (outcome, text) == (("UPDATE", rum) if refused else ("ADD", f"{tea} > {rum}"))
        assert refused or isinstance(answer, Undone), answer
        await scripted.undo(later)
        if refused:
            await scripted.undo(event_id)
        assert await stored(scripted) == []


async def test_what_has_not_ended_or_did_nothing_has_nothing_to_undo(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    with pytest.raises(Conflict, match="still PENDING"):
        await engine.undo(event_id)
    await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    with pytest.raises(Conflict, match="nothing to undo"):
        await engine.undo(event_id)
    await engine.drain()
    quiet = await does(engine, "How are you?")
    assert (await engine.undo(quiet)).gone == []


async def test_relations_go_and_return_with_the_event(engine: Engine) -> None:
    await does(engine, "I live in Berlin.")
    before = await relations(engine)
    moved = await does(engine, "I moved to Munich.")
    assert await relations(engine) != before
    undone = await engine.undo(moved)
    assert (undone.relations_gone, undone.relations_back) == (1, 1)
    assert await relations(engine) == before
    assert await stored(engine) == ["User lives in Berlin"]


async def test_the_same_may_be_said_again_after_an_undo(engine: Engine) -> None:
    for _ in range(2):
        event_id = await does(engine, "I live in Berlin.")
        assert [outcome for outcome, _ in await engine.outcomes(event_id)] == ["ADD"]
        assert len(await relations(engine)) == 1
        await engine.undo(event_id)
        assert (await stored(engine), await relations(engine)) == ([], set())


async def test_an_undo_takes_as_many_statements_for_many_memories_as_for_one(
    scripted: Engine,
) -> None:
    few = await does(scripted, "tea.")
    many = await does(scripted, *(f"dish {n}." for n in range(40)))
    await does(scripted, *(f"dish {n}. > meal {n}." for n in range(40)))
    engine = scripted.ledger.engine.sync_engine
    counts = []
    for event_id in (few, many):
        statements: list[str] = []

        def note(
            _c: object, _d: object, statement: str, *_: object, to: list[str] = statements
        ) -> None:
            to.append(statement)

        event.listen(engine, "before_cursor_execute", note)
        await scripted.undo(event_id, force=True)
        event.remove(engine, "before_cursor_execute", note)
        counts.append(len(statements))
    assert counts[0] == counts[1] < 40


async def test_an_undo_of_many_memories_leaves_most_of_the_index_to_the_sweeper(
    scripted: Engine,
) -> None:
    many = A_PIECE + 3
    event_id = await does(scripted, *(f"dish {n}." for n in range(many)))
    await scripted.services.index.catch_up()
    assert len((await scripted.undo(event_id)).gone) == many
    assert await scripted.services.index.catch_up() == 3


async def test_an_undo_is_worked_out_again_where_a_memory_changes_in_between(
    scripted: Engine,
) -> None:
    event_id = await does(scripted, "tea.", "rum.")
    changed = await memory_of(scripted, event_id)
    ledger = scripted.ledger
    plan = await ledger.undo._plan(scripted.project.id, event_id)
    await edit(
        scripted.project.id,
        [MemoryEdit(changed, {"metadata": {"n": 1}})],
        editing=ledger.editing,
        embedder=scripted.services.embedder,
        index=scripted.services.index,
    )
    states = _states(event_id, plan.free, {}, "fake/hash") | {"key_id": None}
    assert await ledger.undo._carry_out(plan, states, force=False) is None
    assert (await scripted.event(event_id)).undone_at is None
    with pytest.raises(Conflict, match=str(changed)):
        await scripted.undo(event_id)


async def test_only_the_project_of_an_event_can_undo_it(scripted: Engine) -> None:
    event_id = await does(scripted, "tea.")
    other = await Engine.create(scripted.ledger)
    with pytest.raises(NotFound):
        await other.undo(event_id)
    assert await stored(scripted) == ["tea."]


async def test_the_route_tells_what_was_undone_and_what_stands_in_the_way(
    service: Service,
) -> None:
    event_id = await does(service.engine, "tea.", "rum.")
    path = f"/v1/event/{event_id}/undo/"
    changed = str(await memory_of(service.engine, await does(service.engine, "tea. > jam.")))
    refused = await service.client.post(path, json={})
    assert refused.status_code == 409
    assert changed in error_of(refused)
    assert "force" in error_of(refused)
    done = (await service.client.post(path, json={"force": True})).json()
    assert (len(done["removed"]), done["restored"]) == (1, [])
    assert [row["id"] for row in done["skipped"]] == [changed]
    assert (await service.event(str(event_id)))["undone_at"] == done["undone_at"]
    assert (await service.client.post(path)).status_code == 409


async def says(engine: Engine, text: str, day: int) -> UUID:
    """Send a message of that day."""
    at = datetime(2026, 3, day, tzinfo=UTC)
    event_id = await engine.send(engine.scope(), [Message(Role.USER, text)], said_at=at)
    await engine.drain()
    return event_id


async def days(engine: Engine) -> list[int]:
    """The days of the statements of the active memories."""
    table = tables.memories.c
    async with engine.ledger.engine.connect() as connection:
        query = select(table.said_at).where(table.state == "ACTIVE")
        return [at.day for at in await connection.scalars(query)]


async def test_an_undone_restatement_moves_no_time(engine: Engine) -> None:
    first = await says(engine, "I live in Bern.", 1)
    second, third = [await says(engine, "I live in Bern.", day) for day in (10, 20)]
    assert await days(engine) == [20]
    for event_id, day in ((third, 10), (second, 1)):
        await engine.undo(event_id)
        assert await days(engine) == [day]
    await engine.undo(await says(engine, "I live in Bern.", 15))
    assert await days(engine) == [1]
    assert len(await engine.history_rows()) == 1
    await says(engine, "I moved to Porto.", 5)
    assert await engine.texts() == ["User lives in Porto"]
    assert (await engine.event(first)).undone_at is None


async def test_an_undo_leaves_the_time_of_a_later_restatement(engine: Engine) -> None:
    await says(engine, "I live in Bern.", 1)
    second = await says(engine, "I live in Bern.", 10)
    await says(engine, "I live in Bern.", 20)
    await engine.undo(second)
    assert await days(engine) == [20]


async def test_an_undone_change_returns_to_the_time_of_a_restatement(engine: Engine) -> None:
    await says(engine, "I live in Bern.", 1)
    restated = await says(engine, "I live in Bern.", 10)
    moved = await says(engine, "I moved to Porto.", 20)
    await engine.undo(moved)
    assert await engine.texts() == ["User lives in Bern"]
    assert await days(engine) == [10]
    await engine.undo(restated)
    assert await days(engine) == [1]
    await engine.undo(await says(engine, "I moved to Rome.", 25))
    assert await days(engine) == [1]


async def test_a_memory_that_another_event_repeated_since_is_in_the_way(engine: Engine) -> None:
    first = await says(engine, "I live in Bern.", 1)
    again = await says(engine, "I live in Bern.", 10)
    with pytest.raises(Conflict, match="was stated again since"):
        await engine.undo(first)
    assert (await engine.undo(first, force=True)).gone == []
    assert await engine.texts() == ["User lives in Bern"]
    await says(engine, "I moved to Porto.", 20)
    moved = await says(engine, "I moved to Rome.", 22)
    last = await says(engine, "I live in Rome.", 25)
    with pytest.raises(Conflict, match="was stated again since"):
        await engine.undo(moved)
    await engine.undo(last)
    await engine.undo(moved)
    assert await engine.texts() == ["User lives in Porto"]
    assert (await engine.event(again)).undone_at is None


@pytest.mark.parametrize("change", ["delete", "edit"])
async def test_an_undo_brings_back_no_relation_that_a_person_ended(
    service: Service, change: str
) -> None:
    engine = service.engine
    engine.with_model(RulesModel())
    await says(engine, "My brother is Sam.", 5)
    earlier = await says(engine, "My brother is Sam.", 1)
    assert len(await engine.relations("brother Sam")) == 1
    [row] = await service.listed()
    path = f"/v1/memories/{row['id']}/"
    if change == "delete":
        await service.client.delete(path)
    else:
        await service.client.put(path, json={"text": "User is an only child"})
    assert await engine.relations("brother Sam") == []
    await engine.undo(earlier)
    assert await engine.relations("brother Sam") == []


async def test_force_leaves_the_relations_of_a_memory_that_it_skips(engine: Engine) -> None:
    first = await says(engine, "I live in Oslo.", 1)
    await says(engine, "I live in Oslo.", 2)
    undone = await engine.undo(first, force=True)
    assert (len(undone.skipped), undone.relations_gone) == (1, 0)
    assert await engine.texts() == ["User lives in Oslo"]
    assert [edge.destination for edge in await engine.relations("User lives")] == ["Oslo"]
    moved = await says(engine, "I moved to Rome.", 3)
    await says(engine, "I live in Rome.", 4)
    await engine.undo(moved, force=True)
    assert await engine.texts() == ["User lives in Rome"]
    assert [edge.destination for edge in await engine.relations("User lives")] == ["Rome"]


async def test_bad_input_is_refused_by_name(service: Service) -> None:
    assert (await service.client.post("/v1/event/7/undo/")).status_code == 400
    assert (await service.client.post(f"/v1/event/{uuid4()}/undo/")).status_code == 404
    answer = await service.client.post(f"/v1/event/{uuid4()}/undo/", json={"force": "maybe"})
    assert (answer.status_code, "force" in error_of(answer)) == (400, True)


async def test_a_restored_relation_ends_when_its_successor_did(engine: Engine) -> None:
    """Bern, Porto, Rome; without Porto, Bern lasted until Rome."""
    ids = []
    for text in ("I live in Bern.", "I moved to Porto.", "I moved to Rome."):
        ids.append(await engine.add(text))
        await engine.drain()

    async def homes() -> dict[str, tuple[bool, datetime | None, UUID | None]]:
        query = (
            select(tables.entities.c.name, tables.relations)
            .join(tables.entities, tables.entities.c.id == tables.relations.c.destination_id)
            .where(tables.relations.c.relation == "lives_in")
        )
        async with engine.ledger.engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        return {r.name: (r.expired_at is None, r.valid_to, r.ended_by) for r in rows}

    before = await homes()
    assert [name for name, (current, _, _) in before.items() if current] == ["Rome"]
    await engine.undo(ids[1], force=True)
    after = await homes()
    assert [name for name, (current, _, _) in after.items() if current] == ["Rome"]
    assert after["Bern"] == before["Porto"]
    await engine.undo(ids[2], force=True)
    last = await homes()
    assert last["Bern"] == (True, None, None)
