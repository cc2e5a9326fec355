"""Open conflicts: statements that cannot both hold, and their resolution."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from api.auth.tenant import Caller
from api.conflicts import responses as conflict_responses
from api.conflicts.requests import ConflictResolveRequest
from api.conflicts.responses import ConflictJson
from api.http.ids import EntityIds, uuid
from api.http.paging import Paged, scoped
from api.http.shared_responses import ScopedPageJson
from api.http.strict_json import StrictJson
from pipeline.conflicts import service as use_cases
from pipeline.domain.conflicts import ConflictState

router = APIRouter(prefix="/v1/conflicts", tags=["suggestions"], route_class=StrictJson)


@router.get("/")
async def list_conflicts(
    call: Caller,
    http: Request,
    page: Paged,
    ids: EntityIds,
    state: Annotated[ConflictState | None, Query()] = None,
) -> ScopedPageJson[ConflictJson]:
    """Statements that cannot both hold and that nothing decides, newest first.

    `question` is the one to ask the person. `state`: OPEN or RESOLVED.

    Ids restrict them to the scopes with all of these ids. `bounded_parts`: `count` if there are at
    least that many, `results` if some may be missing, because the ids have more than 20,000 scopes.
    """
    listed = await call.ledger.conflicts.page(call.project.id, ids=ids, state=state, **page.window)
    return scoped(page, listed, conflict_responses.conflict, http)


@router.get("/{conflict_id}/")
async def get(conflict_id: str, call: Caller) -> ConflictJson:
    """One conflict: its statements, the question to ask, and the resolution."""
    return conflict_responses.conflict(
        await call.ledger.conflicts.get(call.project.id, uuid("conflict_id", conflict_id))
    )


@router.post("/{conflict_id}/resolve/")
async def resolve(conflict_id: str, request: ConflictResolveRequest, call: Caller) -> ConflictJson:
    """Resolve an open conflict: keep one memory, keep both, or replace them by a text.

    `resolution_event_id` is an event with a receipt; an undo of it opens the conflict again.
    """
    identity, stores = uuid("conflict_id", conflict_id), call.api.stores
    await use_cases.resolve(
        call.project.id,
        identity,
        keep=request.kept_id,
        text=request.text,
        conflicts=stores.ledger.conflicts,
        embedder=stores.embedder,
        index=stores.index,
    )
    return conflict_responses.conflict(await stores.ledger.conflicts.get(call.project.id, identity))
