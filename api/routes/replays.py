"""Replays of a whole scope: begin one, look what it would change, switch it on or drop it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request

from api.dependencies import Caller, Given
from api.examples import answers
from api.http.paging import Paged
from api.http.strict_json import StrictJson
from api.schemas import replays as replay_schemas
from api.views import replays as replay_views
from pipeline.domain.errors import InvalidInput
from pipeline.replays import service as use_cases

router = APIRouter(prefix="/v1/replays", tags=["replays"], route_class=StrictJson)


@router.post("/", responses=answers("replay"))
async def begin(
    request: replay_schemas.BeginRequest, api: Given, project: Caller
) -> dict[str, Any]:
    """Take all that was ever added under exactly these ids through the stages again, in a shadow:
    with other instructions, another model or embedder, or the answers recorded then.

    Nobody's reads see the shadow. Cancelled and undone events are left out.
    """
    scope, wish = request.scope(project), request.wish(api.settings)
    limits = replay_schemas.limits(api.settings)
    ledger = api.stores.ledger
    begun = await use_cases.begin(scope, wish, limits, ledger=ledger, dispatcher=api.dispatcher)
    return replay_views.replay(begun)


@router.get("/")
async def list_replays(
    api: Given,
    project: Caller,
    http: Request,
    page: Paged,
) -> dict[str, Any]:
    """The project's replays, newest first."""
    shadows = api.stores.ledger.shadows
    found, count = await shadows.page(project.id, limit=page.limit, offset=page.offset)
    return page.envelope([replay_views.replay(one) for one in found], count, http)


@router.get("/{replay_id}/", responses=answers("replay"))
async def get(replay_id: str, api: Given, project: Caller) -> dict[str, Any]:
    """How far a replay is: RUNNING, READY, or SWITCHED.

    `behind` counts the events that were added since it began; a switch replays them first.
    """
    return replay_views.replay(await api.stores.ledger.shadows.get(project.id, uuid(replay_id)))


@router.get("/{replay_id}/diff/", responses=answers("replay_diff"))
async def diff(replay_id: str, api: Given, project: Caller) -> dict[str, Any]:
    """What a switch would change: memories that would go, come, or read otherwise for the same
    message; relations; and edits by people that would be lost. 409 while the replay is RUNNING.
    """
    found = await api.stores.ledger.switch.difference(project.id, uuid(replay_id))
    return replay_views.diff(found)


@router.post("/{replay_id}/switch/")
async def switch(
    replay_id: str, api: Given, project: Caller, request: replay_schemas.SwitchRequest | None = None
) -> dict[str, Any]:
    """Make what the replay remembers what these ids remember, all at once. What they remembered
    before is superseded, and stays in the history.

    409 where events came since, which are replayed first: ask again; and where edits by people
    would be lost, or events failed that had succeeded, unless `force` is true.
    """
    identity = uuid(replay_id)
    stores = api.stores
    done = await use_cases.switch(
        project.id,
        identity,
        force=request is not None and request.force,
        ledger=stores.ledger,
        embedder=stores.embedder,
        index=stores.index,
        dispatcher=api.dispatcher,
    )
    return replay_views.switched(await stores.ledger.shadows.get(project.id, identity), done)


@router.delete("/{replay_id}/")
async def discard(replay_id: str, api: Given, project: Caller) -> dict[str, str]:
    """Drop a replay and all it came to; nothing else changes. 409 once it was switched on."""
    stores = api.stores
    await use_cases.discard(project.id, uuid(replay_id), ledger=stores.ledger, index=stores.index)
    return {"message": "Replay discarded."}


def uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput("replay_id should be a valid UUID") from None
