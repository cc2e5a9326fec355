"""Replays of a whole scope: start one, read its diff, switch to it or discard it."""

from __future__ import annotations

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.http.ids import EntityIds, uuid
from api.http.paging import Paged
from api.http.shared_responses import DoneJson, PageJson
from api.http.strict_json import StrictJson
from api.http.typed_route import example
from api.replays import requests as replay_requests
from api.replays import responses as replay_responses
from api.replays.responses import DifferenceJson, ReplayJson, SwitchedJson
from pipeline.replays import service as use_cases

router = APIRouter(prefix="/v1/replays", tags=["replays"], route_class=StrictJson)


@router.post("/", responses=example(__package__))
async def begin(request: replay_requests.BeginRequest, call: Caller) -> ReplayJson:
    """Process all events of exactly these ids again in a shadow: with other instructions, another
    model or embedder, or the recorded answers.

    Reads do not see the shadow. Cancelled and undone events are left out.
    """
    scope, options = request.scope(call.project.id), request.options(call.api.settings)
    limits = replay_requests.limits(call.api.settings)
    shadows = call.ledger.shadows
    begun = await use_cases.begin(
        scope, options, limits, shadows=shadows, dispatcher=call.api.dispatcher
    )
    return replay_responses.replay(begun)


@router.get("/")
async def list_replays(
    call: Caller, http: Request, page: Paged, ids: EntityIds
) -> PageJson[ReplayJson]:
    """The project's replays, newest first. Ids restrict them to scopes with all of these ids."""
    listed = await call.ledger.shadows.page(call.project.id, ids=ids, **page.window)
    rows = [replay_responses.replay(row) for row in listed.rows]
    return page.envelope(rows, listed.count, http)


@router.get("/{replay_id}/", responses=example(__package__))
async def get(replay_id: str, call: Caller) -> ReplayJson:
    """The progress of a replay: RUNNING, READY, or SWITCHED.

    `behind`: number of events added since it started; a switch replays them first.
    """
    identity = uuid("replay_id", replay_id)
    return replay_responses.replay(await call.ledger.shadows.get(call.project.id, identity))


@router.get("/{replay_id}/diff/", responses=example(__package__, "diff_example.json"))
async def diff(replay_id: str, call: Caller) -> DifferenceJson:
    """The changes that a switch would make: memories that are removed, added, or reworded for the
    same message; relations; and edits by people that would be lost. 409 while the replay is
    RUNNING.
    """
    difference = await call.ledger.switch.difference(call.project.id, uuid("replay_id", replay_id))
    return replay_responses.diff(difference)


@router.post("/{replay_id}/switch/")
async def switch(
    replay_id: str, call: Caller, request: replay_requests.SwitchRequest | None = None
) -> SwitchedJson:
    """Replace the memories of these ids by those of the replay, in one step. The replaced ones are
    superseded, and stay in the history.

    409 if events were added since the start: they are replayed first, so repeat the request. Unless
    `force` is true, also 409 if edits by people would be lost, or if events failed that had
    succeeded.
    """
    identity = uuid("replay_id", replay_id)
    stores = call.api.stores
    done = await use_cases.switch(
        call.project.id,
        identity,
        force=request is not None and request.force,
        shadows=stores.ledger.shadows,
        switches=stores.ledger.switch,
        embedder=stores.embedder,
        index=stores.index,
        dispatcher=call.api.dispatcher,
    )
    return replay_responses.switched(
        await stores.ledger.shadows.get(call.project.id, identity), done
    )


@router.delete("/{replay_id}/")
async def discard(replay_id: str, call: Caller) -> DoneJson:
    """Delete a replay and its memories; nothing else changes. 409 after a switch."""
    stores, identity = call.api.stores, uuid("replay_id", replay_id)
    shadows = stores.ledger.shadows
    await use_cases.discard(call.project.id, identity, shadows=shadows, index=stores.index)
    return {"message": "Replay discarded."}
