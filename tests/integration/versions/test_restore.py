"""Authors of changes in the history, restore of a version, and comparison of two times."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
from sqlalchemy import select

from pipeline.ledger.tables import memories
from tests.integration.versions.test_as_of import (
    JANUARY,
    History,
    listed,
    moved,
    note,
    now,
    say,
    service,
    texts,
)
from tests.support.api_service import MAYA, Service

__all__ = ["service"]
PORTO, LISBON = "User lives in Porto", "User lives in Lisbon"


async def history(service: Service, memory_id: str) -> list[dict[str, Any]]:
    answer = await service.client.get(f"/v1/memories/{memory_id}/history/")
    assert answer.status_code == 200, answer.text
    return list(answer.json())


async def restored(service: Service, memory_id: str, **body: object) -> httpx.Response:
    return await service.client.post(f"/v1/memories/{memory_id}/restore/", json=body)


async def changes(service: Service, since: str, until: str, **ids: str) -> dict[str, Any]:
    params = {"from": since, "to": until, **ids}
    answer = await service.client.get("/v1/changes/", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


# ── history ──────────────────────────────────────────────────────────────────────────────────────


async def test_each_version_names_its_author_and_its_times(service: Service) -> None:
    _, memory_id, event_id = await moved(service)
    path = f"/v1/memories/{memory_id}/"
    await service.client.put(path, json={"text": "User lives in Braga"})
    await restored(service, memory_id, version=2, reason="It was right.")
    await service.client.delete(path)
    added, updated, edited, back, deleted = await history(service, memory_id)
    assert added["who"]["type"] == "event"
    assert updated["who"] == {"type": "event", "event_id": event_id}
    assert edited["who"] == back["who"] == deleted["who"] == {"type": "api", "key": "first"}
    assert [row["version"] for row in (added, updated, edited, back, deleted)] == [1, 2, 3, 4, 5]
    assert (updated["old_memory"], updated["new_memory"]) == (PORTO, LISBON)
    assert updated["said_at"] == updated["valid_from"] == "2026-05-01T00:00:00Z"
    assert updated["stored_at"] == updated["created_at"]
    assert back["reason"] == "Restored to version 2. It was right."


async def test_an_undo_and_a_replay_are_authors(service: Service) -> None:
    _, memory_id, event_id = await moved(service)
    await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    undone = (await history(service, memory_id))[-1]
    assert undone["who"] == {"type": "undo", "event_id": event_id, "key": "first"}
    await service.client.put(f"/v1/memories/{memory_id}/", json={"text": "User lives in Braga"})
    replay = (await service.client.post("/v1/replays/", json=MAYA)).json()["id"]
    await service.engine.drain()
    await service.client.post(f"/v1/replays/{replay}/switch/", json={"force": True})
    replaced = (await history(service, memory_id))[-1]
    assert replaced["who"] == {"type": "replay", "replay_id": replay}


# ── restore ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_restore_is_a_new_version_with_all_values_of_the_old_one(service: Service) -> None:
    await note(service, "Tea at five", metadata={"kind": "habit"})
    [first] = await listed(service)
    path = f"/v1/memories/{first['id']}/"
    change = {"text": "Tea at six", "metadata": {}, "expiration_date": "2020-01-01"}
    await service.client.put(path, json=change)
    answer = await restored(service, first["id"], version=1)
    assert answer.status_code == 200, answer.text
    [row] = await listed(service)
    assert row == answer.json()
    assert row["version"] == 3
    assert row["edited_at"] is not None  # a restore takes back no edit of a person
    own = ("version", "updated_at", "edited_at")
    assert {k: v for k, v in row.items() if k not in own} == {
        k: v for k, v in first.items() if k not in own
    }
    [hit] = await service.search("Tea at five")
    assert hit["score_breakdown"]["semantic"] > 0.99
    assert (await restored(service, first["id"], version=2)).json()["memory"] == "Tea at six"


async def test_a_deleted_memory_is_restored_and_the_event_can_no_longer_be_undone(
    service: Service,
) -> None:
    _, memory_id, event_id = await moved(service)
    await service.client.delete(f"/v1/memories/{memory_id}/")
    answer = await restored(service, memory_id, version=1)
    assert (answer.status_code, answer.json()["lifecycle_state"]) == (200, "active")
    assert await texts(service) == [PORTO]
    assert (await history(service, memory_id))[-1]["event"] == "ADD"
    undo = await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert undo.status_code == 409
    # A later replacement does not count as a deletion by a person.
    async with service.engine.ledger.engine.connect() as connection:
        assert (await connection.scalars(select(memories.c.forgotten_at))).all() == [None]


async def test_a_restore_ends_the_relations_that_its_text_does_not_give(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    assert await places(service) == ["Lisbon"]
    await restored(service, memory_id, version=1)
    assert await places(service) == []


async def places(service: Service) -> list[str]:
    """The places that the graph gives as Maya's residence."""
    answer = await service.client.get("/v1/graph/", params=MAYA)
    return [row["target"] for row in answer.json()["results"] if row["relationship"] == "lives_in"]


async def test_a_text_that_another_memory_has_is_not_restored(service: Service) -> None:
    await note(service, "Tea at five")
    [row] = await listed(service)
    await service.client.put(f"/v1/memories/{row['id']}/", json={"text": "Tea at six"})
    await note(service, "Tea at five")
    refused = await restored(service, row["id"], version=1)
    assert refused.status_code == 409
    assert "has this text now" in refused.json()["error"]
    assert await texts(service) == ["Tea at five", "Tea at six"]


async def test_what_cannot_be_restored_is_refused(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    await say(service, "I live in Berlin.", JANUARY.replace(year=2025))
    await service.client.delete(f"/v1/memories/{memory_id}/")
    assert (await restored(service, memory_id, version=3)).status_code == 400
    assert (await restored(service, memory_id, version=9)).status_code == 404
    assert (await restored(service, memory_id, version=0)).status_code == 400
    assert (await restored(service, str(uuid4()), version=1)).status_code == 404
    await note(service, "Fixed", immutable=True)
    [row] = await listed(service)
    assert (await restored(service, row["id"], version=1)).status_code == 400


async def test_a_restore_undoes_a_restore(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    assert (await restored(service, memory_id, version=2)).status_code == 400
    await restored(service, memory_id, version=1)
    assert await texts(service) == [PORTO]
    await restored(service, memory_id, version=2)
    assert await texts(service) == [LISBON]
    assert await texts(service, valid_at="2026-03-01") == [PORTO]


# ── comparison ───────────────────────────────────────────────────────────────────────────────────


async def test_two_times_differ_by_what_was_added_changed_and_deleted(service: Service) -> None:
    start = await now(service)
    await moved(service)
    await note(service, "Tea at five")
    middle = await now(service)
    rows = {row["memory"]: row for row in await listed(service)}
    await service.client.put(
        f"/v1/memories/{rows[LISBON]['id']}/", json={"text": "User lives in Porto Alegre"}
    )
    await service.client.delete(f"/v1/memories/{rows['Tea at five']['id']}/")
    await note(service, "Coffee at ten", user_id="omar")
    end = await now(service)
    of_maya = await changes(service, middle, end, **MAYA)
    assert of_maya["counts"] == {"added": 0, "changed": 1, "gone": 1}
    changed = {row["change"]: row for row in of_maya["results"]}
    assert changed["changed"]["diff"] == "User lives in [-Lisbon-]{+Porto Alegre+}"
    assert changed["changed"]["before"] == rows[LISBON]
    assert changed["gone"]["diff"] is None
    assert (changed["gone"]["before"], changed["gone"]["after"]) == (rows["Tea at five"], None)
    of_project = await changes(service, middle, end)
    assert of_project["counts"] == {"added": 1, "changed": 1, "gone": 1}
    of_one = await changes(service, start, end, memory_id=rows[LISBON]["id"])
    [row] = of_one["results"]
    assert (row["change"], row["diff"]) == ("added", None)
    assert (await changes(service, start, end, **MAYA))["counts"]["added"] == 1
    assert (await changes(service, end, end))["count"] == 0


async def test_changes_come_in_pages(service: Service) -> None:
    start = await now(service)
    for number in range(3):
        await note(service, f"Note {number}")
    end = await now(service)
    pages = [await changes(service, start, end, page=str(page), page_size="2") for page in (1, 2)]
    assert [len(page["results"]) for page in pages] == [2, 1]
    assert pages[0]["count"] == 3
    assert len({row["id"] for page in pages for row in page["results"]}) == 3


async def test_a_change_that_was_taken_back_is_none(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    start = await now(service)
    await restored(service, memory_id, version=1)
    await restored(service, memory_id, version=2)
    assert (await changes(service, start, await now(service), **MAYA))["count"] == 0


async def test_changes_are_the_difference_of_the_lists_of_both_times(service: Service) -> None:
    made = History(service, 11)
    await made.run(16)
    times = [time for time, user, _ in made.answers if user == "maya"]
    for since, until in zip(times[::4], times[3::4], strict=False):
        expected: dict[str, dict[int, dict[str, Any]]] = {}
        for time, mark in ((since, -1), (until, 1)):
            for row in await listed(service, as_of=time, show_expired=True):
                expected.setdefault(row["id"], {})[mark] = row
        answer = await changes(service, since, until, user_id="maya", page_size="200")
        assert {row["id"]: (row["before"], row["after"]) for row in answer["results"]} == {
            key: (sides.get(-1), sides.get(1))
            for key, sides in expected.items()
            if visible(sides.get(-1)) != visible(sides.get(1))
        }


def visible(row: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """The values of which a difference is a change."""
    names = ("memory", "metadata", "categories", "expiration_date", "immutable", "valid_from")
    return tuple(row[name] for name in names) if row else None
