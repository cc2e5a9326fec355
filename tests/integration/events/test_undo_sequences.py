"""Random sequences of operations: undos in reverse order restore what was stored before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.versions.test_as_of import USERS, History
from tests.support.api_service import Service

EVERYTHING = {"show_expired": True, "show_superseded": True}
# An undo is a new version.
NEW = dict.fromkeys(("version", "updated_at"))


async def stored(history: History) -> dict[str, Any]:
    """Memories and current relations of all users, without what each undo changes."""
    memories = {user: await history.all(user, **EVERYTHING) for user in USERS}
    client = history.service.client
    graphs = [(await client.get("/v1/graph/", params={"user_id": user})).json() for user in USERS]
    keys = ("source", "relationship", "target", "valid_from", "valid_to")
    return {
        "memories": {row["id"]: row | NEW for rows in memories.values() for row in rows},
        "relations": sorted(
            tuple(str(row[key]) for key in keys) for graph in graphs for row in graph["results"]
        ),
    }


async def clear(history: History, user: str) -> None:
    """Delete all memories of the user, as an event."""
    answer = await history.service.client.delete("/v1/memories/", params={"user_id": user})
    history.events.append(answer.json()["event_id"])


@pytest.mark.parametrize("seed", [100, 101, 102])
async def test_undos_in_reverse_order_restore_what_was_stored(service: Service, seed: int) -> None:
    history = History(service, seed)
    await history.run(6)
    for _ in range(3):
        await history.edit("maya")
    # Only events: what a person changes in between is in the way of an undo.
    done = []
    for operation in (History.add, History.verbatim, clear, History.add, clear):
        before = await stored(history)
        await operation(history, "maya")
        done.append((history.events[-1], before))
    for event_id, before in reversed(done):
        path = f"/v1/event/{event_id}/undo/"
        dry = await service.client.post(path, json={"dry_run": True})
        undone = await service.client.post(path, json={})
        assert undone.status_code == 200, undone.text
        assert undone.json() | {"undone_at": None} == dry.json()
        assert await stored(history) == before
