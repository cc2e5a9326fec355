"""Imports and reads beside another project: references never lead to its rows."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin
from uuid import UUID, uuid4

import httpx
import orjson
import pytest
from pydantic import BaseModel
from sqlalchemy import insert, select, text

from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import (
    conflict_members,
    conflicts,
    memories,
    memory_history,
    past_states,
    relations,
)
from pipeline.text.equality import text_hash
from pipeline.transfer import records
from pipeline.transfer.renaming import KEYS, UNCHANGED
from tests.integration.transfer.test_http import EXPORT, IMPORT, TIMES, memory
from tests.support.api_service import ADD, LIST, MAYA, SEARCH, Service

SECRET = "Zanzibar"
NOAH = {"user_id": "noah"}
AT = TIMES["created_at"]


@dataclass(frozen=True)
class Neighbour:
    """Another project of the server, with the ids of a row of each kind."""

    project_id: ProjectId
    client: httpx.AsyncClient
    ids: dict[str, str]


@pytest.fixture
async def neighbour(service: Service) -> Any:
    """A project with an event, a memory that was changed, a relation, a conflict and a key."""
    project, key = await service.engine.ledger.projects.create("theirs")
    headers = {"Authorization": f"Token {key}"}
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://memlane", headers=headers
    ) as client:
        for turn in (f"I live in {SECRET}.", f"I moved from {SECRET} to Oslo."):
            body = {"messages": turn, "name": SECRET} | NOAH
            event_id = (await client.post(ADD, json=body)).json()["event_id"]
            await service.engine.drain()
        [mine] = (await client.post(LIST, json={"filters": NOAH})).json()["results"]
        name = {"name": SECRET, "scope": "read"}
        key_id = (await client.post("/v1/keys/", json=name)).json()["id"]
        ids = {"event": event_id, "memory": mine["id"], "key": key_id}
        lane_id = Scope(project.id, user_id="noah").lane_id
        async with service.engine.ledger.engine.begin() as connection:
            for kind, table in (("relation", relations), ("past", past_states)):
                query = select(table.c.id).where(table.c.lane_id == lane_id).limit(1)
                ids[kind] = str(await connection.scalar(query))
            row: dict[str, Any] = {"id": uuid4(), "project_id": project.id, "lane_id": lane_id}
            row |= {"slot": "home", "event_id": event_id}
            await connection.execute(insert(conflicts).values(row))
            ids["conflict"] = str(row["id"])
        yield Neighbour(project.id, client, ids)


def lines(of: dict[str, str]) -> list[dict[str, Any]]:
    """A line of each type; each field that can hold an id has that of this row."""
    place = {"event_id": of["event"], "message_ordinal": 0}
    edge: dict[str, Any] = {"source": "me", "relation": "lives_in", "destination": "rome"}
    member = {"memory_id": of["memory"], "against_id": of["memory"], "text_hash": "00"}
    scope: list[dict[str, Any]] = [
        event_line(of, edge),
        memory_line(of, place),
        {"type": "entity", "key": "me", "name": "Me", "kind": "person", "created_at": AT},
        {"type": "entity", "key": "rome", "name": "Rome", "kind": "place", "created_at": AT},
        {
            "type": "relation", "id": of["relation"], "memory_id": of["memory"],
            "ended_by": of["event"], "valid_from": AT, "created_at": AT,
            "past_ends": [{"expired_at": AT, "ended_by": of["event"], "replaced_at": AT}],
        } | edge | place,
        {
            "type": "summary", "version": 1, "text": "x", "until_event": of["event"],
            "messages": 1, "model": "m", "prompt": "p", "created_at": AT,
        },
        {
            "type": "conflict", "id": of["conflict"], "slot": "home", "event_id": of["event"],
            "resolved_by": of["event"], "resolution": "BOTH", "created_at": AT,
            "members": [member],
        },
    ]  # fmt: skip
    return [MAYA | line for line in scope]


def event_line(of: dict[str, str], edge: dict[str, Any]) -> dict[str, Any]:
    turn = {"role": "user", "content": "I live in Rome.", "said_at": AT}
    about = {"memory_id": of["memory"], "reason": "y", "message_ordinal": 0}
    stored = about | {"outcome": "ADD", "text": "x", "conflict_id": of["conflict"]}
    placed = about | edge | {"outcome": "ADD", "relation_id": of["relation"]}
    return {
        "type": "event", "id": of["event"], "event_type": "ADD", "status": "SUCCEEDED",
        "created_at": AT, "completed_at": AT, "messages": [turn], "receipt": [stored],
        "graph_receipt": [placed],
    }  # fmt: skip


def memory_line(of: dict[str, str], place: dict[str, Any]) -> dict[str, Any]:
    change = {"valid_from": AT, "created_at": AT, "new_text": "User lives in Rome"} | place
    state = {"text": "User lives in Rome", "superseded_by": of["memory"]} | place | TIMES
    changed = change | {"version": 1, "event": "ADD", "undoes": of["event"], "key_id": of["key"]}
    earlier = state | {"id": of["past"], "stored_at": AT, "replaced_at": AT}
    replaced = {"replaced_by": str(uuid4())}
    line = {"type": "memory", "id": of["memory"], "history": [changed]}
    return line | {"past_states": [earlier | replaced]} | state | replaced


def id_fields() -> Iterator[str]:
    """The fields of all lines and of their parts that hold an id."""
    for name, model in vars(records).items():
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (
                f"{name}.{field}"
                for field, info in model.model_fields.items()
                if UUID in _types(info.annotation)
            )


def _types(annotation: Any) -> set[Any]:
    if get_origin(annotation) in (Union, types.UnionType, list, dict):
        return {kind for part in get_args(annotation) for kind in _types(part)}
    return {annotation}


def given_ids(value: BaseModel) -> Iterator[str]:
    """The fields of a line and its parts that have an id."""
    for name in type(value).model_fields:
        field = getattr(value, name)
        if isinstance(field, UUID):
            yield f"{type(value).__name__}.{name}"
        for part in field if isinstance(field, list) else ():
            if isinstance(part, BaseModel):
                yield from given_ids(part)


def new_ids() -> dict[str, str]:
    """Ids that no row has, by the names that `lines` knows."""
    kinds = ("event", "memory", "past", "relation", "conflict", "key")
    return {kind: str(uuid4()) for kind in kinds}


async def send(service: Service, body: dict[str, Any]) -> dict[str, Any]:
    answer = await service.client.post(IMPORT, json=body)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    for event in answer.json().get("events", ()):
        assert (await service.event(event["event_id"]))["status"] == "SUCCEEDED"
    return dict(answer.json())


def test_the_lines_of_this_file_have_an_id_in_every_field_that_can_hold_one() -> None:
    parsed = [records.LINE.validate_python(line) for line in lines(new_ids())]
    given = {field for line in parsed for field in given_ids(line)}
    bases = {"MemoryState.event_id", "MemoryState.superseded_by", "MemoryState.replaced_by"}
    assert given | bases == set(id_fields()), "Add the field to `lines`."
    assert {"replaced_by"} == UNCHANGED
    assert {"key_id"} == KEYS


async def test_no_id_of_another_project_is_stored(service: Service, neighbour: Neighbour) -> None:
    before = (await neighbour.client.get(EXPORT)).text
    await send(service, {"records": lines(neighbour.ids)})
    stored = (await service.client.get(EXPORT)).text
    kinds = {orjson.loads(line)["type"] for line in stored.splitlines()}
    assert kinds == {
        "header",
        "end",
        "event",
        "memory",
        "entity",
        "relation",
        "summary",
        "conflict",
    }
    assert [kind for kind, id_ in neighbour.ids.items() if id_ in stored] == []
    after = (await neighbour.client.get(EXPORT)).text
    assert after.splitlines()[1:] == before.splitlines()[1:]
    [line] = [row for row in map(orjson.loads, stored.splitlines()) if row["type"] == "memory"]
    history = (await service.client.get(f"/v1/memories/{line['id']}/history/")).text
    assert SECRET not in stored + history
    assert "I live in Rome." in history


async def test_an_import_does_not_tell_which_ids_another_project_has(
    service: Service, neighbour: Neighbour
) -> None:
    answers = []
    for id_ in (neighbour.ids["memory"], str(uuid4())):
        line = memory(f"User owns {id_}", id=id_)
        dry = await send(service, {"records": [line], "dry_run": True})
        events = (await send(service, {"records": [line]}))["events"]
        [result] = (await service.event(events[0]["event_id"]))["results"]
        assert result["id"] != id_
        answers.append((dry, result["event"]))
    assert (
        answers[0] == answers[1] == ({"dry_run": True, "new": {"memory": 1}, "stored": {}}, "ADD")
    )


@pytest.mark.parametrize("new_ids", [False, True])
async def test_a_file_of_another_project_is_imported_once(
    service: Service, neighbour: Neighbour, new_ids: bool
) -> None:
    body = {"records": lines(neighbour.ids), "new_ids": new_ids}
    await send(service, body)
    before = (await service.client.get(EXPORT)).text
    counted = await send(service, body | {"dry_run": True})
    assert set(counted["new"]) <= {"summary"}
    await send(service, body)
    assert (await service.client.get(EXPORT)).text.splitlines()[1:] == before.splitlines()[1:]


async def test_the_projects_own_ids_stay_beside_another_project(
    service: Service, neighbour: Neighbour
) -> None:
    await service.add("I live in Porto.")
    exported = (await service.client.get(EXPORT)).text.splitlines()
    body = {"records": [orjson.loads(line) for line in exported[1:-1]]}
    counted = await send(service, body | {"dry_run": True})
    assert not counted["new"]
    await send(service, body)
    assert (await service.client.get(EXPORT)).text.splitlines()[1:] == exported[1:]


async def test_a_history_that_names_an_erased_event_is_imported(
    service: Service, neighbour: Neighbour
) -> None:
    [stated] = lines(new_ids())[1:2]
    await send(service, {"records": [stated]})
    exported = (await service.client.get(EXPORT)).text.splitlines()
    body = {"records": [orjson.loads(line) for line in exported[1:-1]]}
    before = (await neighbour.client.get(EXPORT)).text
    imported = await neighbour.client.post(IMPORT, json=body)
    assert imported.status_code == 200, imported.text
    await service.engine.drain()
    added = set((await neighbour.client.get(EXPORT)).text.splitlines()[1:-1])
    [line] = [orjson.loads(line) for line in added - set(before.splitlines())]
    history = await neighbour.client.get(f"/v1/memories/{line['id']}/history/")
    assert [(row["new_memory"], row["input"]) for row in history.json()] == [(stated["text"], [])]


@pytest.mark.parametrize("option", ["records", "question", "dry_run"])
async def test_an_add_with_an_option_of_the_server_is_refused(
    service: Service, option: str
) -> None:
    """A replay of the event would perform it, past the checks of imports and requests."""
    value: Any = {"kind": "EXPORT", "filters": {}} if option == "question" else {"id": str(uuid4())}
    event = lines(new_ids())[0]
    event |= {"options": {option: "[]" if option == "records" else value}}
    answer = await service.client.post(IMPORT, json={"records": [event]})
    assert answer.status_code == 400, answer.text
    assert option in answer.json()["error"]


async def plant(service: Service, neighbour: Neighbour) -> tuple[str, str]:
    """Store rows as an import of an earlier release could: they refer to the neighbour's.

    Returns the ids of a memory and of a conflict.
    """
    await service.add("I live in Porto.")
    own, project = service.engine.scope("maya"), service.engine.project.id
    theirs = {kind: UUID(id_) for kind, id_ in neighbour.ids.items()}
    conflict = {"id": uuid4(), "project_id": project, "lane_id": own.lane_id, "slot": "home"}
    async with service.engine.ledger.engine.begin() as connection:
        there = memories.c.id == theirs["memory"]
        their_text: str = (await connection.scalars(select(memories.c.text).where(there))).one()
        here = memories.c.lane_id == own.lane_id
        [row] = (await connection.execute(select(memories.c.id, memories.c.text).where(here))).all()
        for table in (memories, relations):
            mine = table.c.lane_id == own.lane_id
            await connection.execute(table.update().where(mine).values(event_id=theirs["event"]))
        mine = relations.c.lane_id == own.lane_id
        await connection.execute(relations.update().where(mine).values(memory_id=theirs["memory"]))
        mine = memory_history.c.memory_id == row.id
        await connection.execute(
            memory_history.update().where(mine).values(event_id=theirs["event"])
        )
        changed = {"version": 0, "key_id": theirs["key"], "event": "UPDATE", "new_text": "x"}
        changed |= {"memory_id": row.id, "project_id": project, "valid_from": text("now()")}
        await connection.execute(insert(memory_history).values(changed | {"metadata": {}}))
        await connection.execute(insert(conflicts).values(conflict | {"event_id": theirs["event"]}))
        for member, against, words in (
            (theirs["memory"], row.id, their_text),
            (row.id, theirs["memory"], row.text),
        ):
            values = {"conflict_id": conflict["id"], "memory_id": member, "against_id": against}
            values |= {"lane_id": own.lane_id, "text_hash": text_hash(words)}
            await connection.execute(insert(conflict_members).values(values))
    return str(row.id), str(conflict["id"])


async def test_reads_do_not_follow_a_reference_into_another_project(
    service: Service, neighbour: Neighbour
) -> None:
    before = await seen(neighbour.client, neighbour.ids["memory"], NOAH)
    memory_id, conflict_id = await plant(service, neighbour)
    reads = await seen(service.client, memory_id, MAYA)
    reads.append((await service.client.get(f"/v1/conflicts/{conflict_id}/")).text)
    assert [read for read in reads if SECRET in read or "Oslo" in read] == []
    keep = {"keep": neighbour.ids["memory"]}
    resolved = await service.client.post(f"/v1/conflicts/{conflict_id}/resolve/", json=keep)
    assert resolved.status_code in (400, 404, 409), resolved.text
    assert await seen(neighbour.client, neighbour.ids["memory"], NOAH) == before


async def test_changes_do_not_follow_a_reference_into_another_project(
    service: Service, neighbour: Neighbour
) -> None:
    memory_id, _ = await plant(service, neighbour)
    theirs = relations.c.project_id == neighbour.project_id
    async with service.engine.ledger.engine.begin() as connection:
        # As in an earlier release: a relation that names no memory.
        await connection.execute(relations.update().where(theirs).values(memory_id=None))
    before = await found(neighbour.client)
    assert before
    assert (await service.client.delete(f"/v1/memories/{memory_id}/")).status_code == 200
    assert await found(neighbour.client) == before
    graph = (await neighbour.client.get("/v1/graph/", params=NOAH)).json()["results"]
    assert graph
    undone = await neighbour.client.post(f"/v1/event/{neighbour.ids['event']}/undo/", json={})
    assert undone.status_code == 200, undone.text
    own = select(relations.c.expired_at).where(relations.c.project_id == service.engine.project.id)
    async with service.engine.ledger.engine.connect() as connection:
        assert set(await connection.scalars(own)) == {None}


async def found(client: httpx.AsyncClient) -> list[str]:
    """Texts of the turns that a search of the neighbour's user returns."""
    body = {"query": SECRET, "filters": NOAH, "include": ["turns"]}
    answer = await client.post(SEARCH, json=body)
    assert answer.status_code == 200, answer.text
    return [row["memory"] for row in answer.json()["results"]]


async def seen(client: httpx.AsyncClient, memory_id: str, owner: dict[str, str]) -> list[str]:
    """Answers of the routes that read references, of one user of a project."""
    user = owner["user_id"]
    answers = [
        await client.get(f"/v1/memories/{memory_id}/history/"),
        await client.get("/v1/memories/events/"),
        await client.get(f"/v1/memories/user/{user}/"),
        await client.get(f"/v1/users/{user}/download/"),
        await client.get("/v1/conflicts/"),
        await client.get("/v1/suggestions/"),
        await client.get("/v1/graph/", params=owner),
        await client.post(LIST, json={"filters": owner}),
    ]
    assert {answer.status_code for answer in answers} == {200}, [a.text for a in answers]
    return [answer.text for answer in answers]
