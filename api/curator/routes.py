"""Runs of the curator, which looks through a scope's memories and makes suggestions."""

from __future__ import annotations

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.curator import responses as curator_responses
from api.curator.requests import CuratorRunRequest
from api.curator.responses import CuratorRunJson
from api.http.ids import EntityIds, uuid
from api.http.paging import Paged, scoped
from api.http.shared_responses import ScopedPageJson
from api.http.strict_json import StrictJson
from pipeline.curator.store import RunLimits

router = APIRouter(prefix="/v1/curator/runs", tags=["suggestions"], route_class=StrictJson)


@router.post("/")
async def start(request: CuratorRunRequest, call: Caller) -> CuratorRunJson:
    """Start a run over the memories of exactly these ids, or return the one that is open already.

    Its suggestions change nothing until they are accepted.
    """
    most, runs = call.api.settings, call.ledger.curator
    limits = RunLimits(
        min(request.suggestions or most.curator_suggestions, most.curator_suggestions),
        min(request.tokens or most.curator_tokens, most.curator_tokens),
    )
    run_id = await runs.start(request.scope(call.project.id), limits)
    return curator_responses.run(await runs.get(call.project.id, run_id))


@router.get("/")
async def list_runs(
    call: Caller, http: Request, page: Paged, ids: EntityIds
) -> ScopedPageJson[CuratorRunJson]:
    """The project's runs, newest first.

    Ids restrict them to the scopes with all of these ids. `bounded_parts`: `count` if there are at
    least that many, `results` if some may be missing, because the ids have more than 20,000 scopes.
    """
    listed = await call.ledger.curator.page(call.project.id, ids=ids, **page.window)
    return scoped(page, listed, curator_responses.run, http)


@router.get("/{curator_run_id}/")
async def get(curator_run_id: str, call: Caller) -> CuratorRunJson:
    """One run: its state, its numbers, and what it cost."""
    run = await call.ledger.curator.get(call.project.id, uuid("curator_run_id", curator_run_id))
    return curator_responses.run(run)


@router.post("/{curator_run_id}/cancel/")
async def cancel(curator_run_id: str, call: Caller) -> CuratorRunJson:
    """End an open run; its suggestions stay. A run that has ended is left as it is."""
    identity, runs = uuid("curator_run_id", curator_run_id), call.ledger.curator
    await runs.cancel(call.project.id, identity)
    return curator_responses.run(await runs.get(call.project.id, identity))
