"""Versions of memories: restore, and comparison of two times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from api.auth.tenant import Caller
from api.auth.users import OfOwner, require_owner
from api.http.ids import EntityIds, uuid
from api.http.large_answers import answer
from api.http.paging import Paged
from api.http.strict_json import StrictJson
from api.memories import responses as memory_responses
from api.memories.responses import ChangePageJson, MemoryJson
from api.versions.requests import RestoreRequest
from pipeline.domain.filters import moment
from pipeline.versions import service as versions

router = APIRouter(tags=["memories"], route_class=StrictJson)


@router.post("/v1/memories/{memory_id}/restore/")
async def restore(
    memory_id: str, request: RestoreRequest, call: Caller, owner: OfOwner = ()
) -> MemoryJson:
    """Give a memory the state of one of its versions, also after it was deleted. That is a new
    version, so it can be taken back by another restore. 409 if another memory has the text; 404 if
    the memory is not of the given ids.
    """
    identity, stores = uuid("memory_id", memory_id), call.api.stores
    if owner:
        entries = await stores.ledger.histories.of(call.project.id, identity)
        if entries:
            require_owner(entries[0].scope, owner)
    restored = await versions.restore(
        call.project.id,
        identity,
        request.version,
        reason=request.reason,
        restores=stores.ledger.restores,
        embedder=stores.embedder,
        index=stores.index,
        key_id=call.grant.key_id,
    )
    return memory_responses.memory(restored)


@router.get("/v1/changes/")
async def changes(
    call: Caller,
    http: Request,
    page: Paged,
    ids: EntityIds,
    since: Annotated[str, Query(alias="from")],
    until: Annotated[str | None, Query(alias="to")] = None,
    memory_id: str | None = None,
) -> ChangePageJson:
    """The memories that differ between two times (`to`: now), newest change first: added, changed
    or gone, each with both states; texts are cut to 1,000 characters. `diff` shows a changed text,
    and is null for long ones. Ids restrict them to one user, agent, app, run or memory; without
    ids, they are those of the project. `incomplete`: without a user, a run or a memory, only the
    newest changes of the project were compared, up to 1,000 behind the page.
    """
    ledger = call.ledger
    rows, counts, incomplete = await ledger.changes.page(
        call.project.id,
        moment("from", since),
        moment("to", until) if until else await ledger.now(),
        ids=ids,
        memory_id=uuid("memory_id", memory_id) if memory_id else None,
        **page.window,
    )

    def build() -> ChangePageJson:
        results = memory_responses.changes(rows)
        envelope = page.envelope(results, sum(counts.values()), http)
        return {
            **envelope,
            "counts": memory_responses.change_counts(counts),
            "incomplete": incomplete,
        }

    states = [state for row in rows for state in (row.before, row.after) if state]
    return await answer(build, rows=len(states), characters=sum(len(s.text) for s in states))
