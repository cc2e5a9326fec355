"""Texts that a person deleted: no suggestion and no conflict shows them, until an undo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import insert, select

from pipeline.ledger.tables import conflict_members, conflicts, memories, suggestions
from tests.support.api_service import MAYA, Service, serving
from tests.support.engine import Engine

SUGGESTIONS, CONFLICTS = "/v1/suggestions/", "/v1/conflicts/"
WORD = "Zanzibar"


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    """A memory with an open suggestion and a statement in a conflict."""
    async with serving(engine.ledger) as service:
        await service.add(f"I live in {WORD}.")
        async with engine.ledger.engine.begin() as connection:
            row = (await connection.execute(select(memories))).one()
            of = {"project_id": row.project_id, "lane_id": row.lane_id}
            await connection.execute(
                insert(suggestions).values(
                    **of,
                    id=row.id,
                    kind="UPDATE",
                    origin="event",
                    event_id=row.event_id,
                    fact_text=f"A fact about {WORD}",
                    targets=[{"memory_id": str(row.id), "version": row.version}],
                    proposed_text=f"User lives in {WORD} City",
                    reason=f"More about {WORD}.",
                    content_hash=b"x",
                )
            )
            await connection.execute(
                insert(conflicts).values(
                    **of, id=row.id, slot="user · residence", event_id=row.event_id
                )
            )
            member = {"conflict_id": row.id, "memory_id": row.id, "against_id": row.id}
            member |= {"lane_id": row.lane_id, "text_hash": row.text_hash}
            await connection.execute(insert(conflict_members).values(member))
        yield service


async def read(service: Service, path: str) -> tuple[dict[str, Any], bool]:
    """The first row of a list, and whether the list or the row shows the word."""
    page = await service.client.get(path)
    [row] = page.json()["results"]
    single = await service.client.get(f"{path}{row['id']}/")
    assert single.json() == row
    return row, WORD in page.text


@pytest.mark.parametrize("by", ["id", "all", "filter"])
@pytest.mark.parametrize("path", [SUGGESTIONS, CONFLICTS])
async def test_a_deleted_text_is_not_shown_and_an_undo_shows_it(
    service: Service, path: str, by: str
) -> None:
    before, shown = await read(service, path)
    assert shown
    [row] = await service.listed()
    if by == "id":
        deleted = await service.client.delete(f"/v1/memories/{row['id']}/")
    elif by == "all":
        deleted = await service.client.delete("/v1/memories/", params=MAYA)
    else:
        tree = {"AND": [MAYA, {"keywords": {"contains": WORD}}]}
        body = {"filters": tree}
        deleted = await service.client.request("DELETE", "/v1/memories/", json=body)
    assert deleted.status_code == 200, deleted.text
    after, shown = await read(service, path)
    assert not shown
    assert path == CONFLICTS or after["state"] == "INVALID"
    if event_id := deleted.json().get("event_id"):
        undone = await service.client.post(f"/v1/event/{event_id}/undo/")
        assert undone.status_code == 200, undone.text
        again, shown = await read(service, path)
        assert shown
        assert path == SUGGESTIONS or again == before


async def test_a_suggestion_about_a_deleted_memory_is_not_accepted(service: Service) -> None:
    await service.client.delete("/v1/memories/", params=MAYA)
    row, _ = await read(service, SUGGESTIONS)
    refused = await service.client.post(f"{SUGGESTIONS}{row['id']}/accept/")
    assert refused.status_code == 409
    assert "deleted" in refused.json()["error"]
    page = await service.client.get(SUGGESTIONS, params={"state": "OPEN"})
    assert page.json()["count"] == 0
