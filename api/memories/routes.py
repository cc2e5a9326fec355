"""Single memories, and deletion of all that match."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.auth.users import (
    NOT_YOURS,
    OfOwner,
    UserCorrecting,
    UserDeleting,
    UserReading,
    require_owner,
)
from api.http.ids import EntityIds, uuid
from api.http.large_answers import answer
from api.http.paging import Paged, scoped
from api.http.query_string import NO_CONDITION, conditions
from api.http.shared_responses import ScopedPageJson, StartedJson, json_of
from api.http.strict_json import StrictJson, read
from api.memories import responses as memory_responses
from api.memories.actions import delete_memory, edit_memory
from api.memories.requests import ALL_IDS, FeedbackRequest, UpdateRequest
from api.memories.responses import (
    IN_PROGRESS,
    DeletedJson,
    FeedbackJson,
    HistoryJson,
    MemoryJson,
    WouldDeleteJson,
)
from api.versions.snapshots import SnapshotQuery
from pipeline.domain.errors import InvalidInput, NotFound
from pipeline.domain.events import EventType
from pipeline.domain.filters import parse, require_scope
from pipeline.memories import service as memories
from pipeline.memories.delete_by_filter import DeleteRequest

router = APIRouter(tags=["memories"], route_class=StrictJson)


@router.get("/v1/memories/events/")
async def feed(
    call: Caller, http: Request, page: Paged, ids: EntityIds
) -> ScopedPageJson[HistoryJson]:
    """All changes of the project's memories, newest first.

    Ids restrict them to the scopes with all of these ids. `bounded_parts`: `count` if there are at
    least that many, `results` if some may be missing, because the ids have more than 20,000 scopes.
    """
    listed = await call.ledger.histories.feed(call.project.id, ids=ids, **page.window)
    build = partial(scoped, page, listed, memory_responses.history, http)
    return await answer(build, rows=len(listed.rows))


@router.get("/v1/memories/{memory_id}/")
async def get(
    memory_id: str, call: UserReading, owner: OfOwner, snapshot: SnapshotQuery
) -> MemoryJson:
    """A memory, also if it has expired. With `as_of`, as it was stored at that time, also if it was
    deleted since; with `valid_at`, the statement that held in its place at that time. 404 if it is
    not of the given ids.
    """
    ledger, identity = call.ledger, uuid("memory_id", memory_id)
    if snapshot.is_current:
        row = await ledger.memories.get(call.project.id, identity)
    else:
        row = await ledger.versions.get(call.project.id, identity, snapshot)
    require_owner(row.scope, owner)
    return memory_responses.memory(row)


@router.put("/v1/memories/{memory_id}/")
async def update(
    memory_id: str, request: UpdateRequest, call: UserCorrecting, owner: OfOwner = ()
) -> MemoryJson:
    """Change text, metadata, timestamp or expiration date; the old state stays in the history.

    No model changes a memory whose text was edited, or that is `pinned`: such a change becomes a
    suggestion. A user's token changes only the text. 404 if the memory is not of the given ids.
    """
    return await edit_memory(memory_id, request, call, owner)


@router.delete("/v1/memories/{memory_id}/")
async def delete(
    memory_id: str, call: UserDeleting, owner: OfOwner = (), delete_linked: bool = False
) -> DeletedJson:
    """Delete one memory; its history stays. Events that were accepted before do not learn its text
    again. A memory keeps its id when it is updated, so `delete_linked` has no effect. 404 if
    the memory is not of the given ids.
    """
    await delete_memory(memory_id, call, owner)
    body: DeletedJson = {"message": "Memory deleted successfully!"}
    if delete_linked:
        body["cascade_count"] = 0
    return body


@router.delete("/v1/memories/")
async def delete_all(
    http: Request, call: Caller, *, dry_run: bool = False
) -> StartedJson | WouldDeleteJson:
    """Delete all memories that match every condition of the query string (ids, `*` for any, and
    `filters` or `metadata` as JSON or as Python prints a dict) and of a body `{"filters": …}`.

    With `*` for all four ids, all memories of the project are deleted. Pending events in the scopes
    of a delete by ids are cancelled. The event can be polled, and undone.

    With `dry_run` the response has the receipt that the event would get, and nothing changes.
    """
    parts = conditions(http.query_params) + _of_body(await http.body())
    tree = require_scope(parse(whole_project(parts)))
    request = DeleteRequest(EventType.DELETE_ALL, tree, {"filters": parts})
    if dry_run:
        return memory_responses.would_delete(
            await call.ledger.clearing.rehearse(call.project.id, request)
        )
    event_id = await memories.clear(
        call.project.id,
        request,
        clearing=call.ledger.clearing,
        index=call.api.stores.index,
        dispatcher=call.api.dispatcher,
    )
    return {"message": IN_PROGRESS, "event_id": str(event_id)}


def whole_project(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The conditions, joined with AND. Four wildcards mean all owners, not owners with four ids."""
    wild = [part for part in parts if part in ALL_IDS]
    if len(wild) == len(ALL_IDS) == len(parts):
        return {"OR": parts}
    return {"AND": parts} if parts else {}


def _of_body(body: bytes) -> list[dict[str, Any]]:
    """The conditions in a body, which must not be ignored: that would widen the delete."""
    if not body.strip():
        return []
    try:
        filters = read(body)
    except orjson.JSONDecodeError:
        raise InvalidInput("The body is not valid JSON.") from None
    if not isinstance(filters, dict):
        raise InvalidInput("The body must be an object of filters.")
    rest = {
        name: value for name, value in filters.items() if name not in NO_CONDITION | {"filters"}
    }
    return [part for part in (filters.get("filters"), rest) if part]


@router.get("/v1/memories/{memory_id}/history/")
async def history(memory_id: str, call: UserReading, owner: OfOwner) -> list[HistoryJson]:
    """All states of the memory, oldest first, with the reason of each change. 404 if it is not of
    the given ids.
    """
    entries = await call.ledger.histories.of(call.project.id, uuid("memory_id", memory_id))
    if not entries:
        raise NotFound(NOT_YOURS)
    require_owner(entries[0].scope, owner)
    characters = sum(len(entry.new_text or "") for entry in entries)
    return await answer(
        lambda: [memory_responses.history(entry) for entry in entries], len(entries), characters
    )


@router.post("/v1/feedback/")
async def feedback(request: FeedbackRequest, call: Caller) -> FeedbackJson:
    """Rate a memory; null removes an earlier rating."""
    await call.ledger.feedback.give(
        call.project.id, request.memory_id, request.feedback, request.feedback_reason
    )
    return json_of(FeedbackJson, request, id=request.memory_id)
