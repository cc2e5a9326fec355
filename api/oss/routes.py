"""Routes of Mem0's open-source server. The answer of an add or delete waits for its event.

The wait is at most WAIT_S seconds, below the 30 s after which its clients give up. After that the
answer has the event's id and status: the request is accepted, and ends without the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException

from api.adds.actions import add_turn, outcome
from api.adds.requests import IdempotencyKey
from api.auth.tenant import Adding, Admin, Caller, Reader
from api.auth.users import OfOwner, is_of, require_owner
from api.dependencies import ApiCall
from api.entities.actions import erase_entity
from api.http.ids import uuid
from api.http.large_answers import answer
from api.http.query_string import conditions
from api.http.shared_responses import DoneJson, ResultsJson, StartedJson
from api.http.strict_json import StrictJson
from api.memories.actions import delete_memory, edit_memory
from api.memories.requests import ALL_IDS, UpdateRequest
from api.oss import responses
from api.oss.requests import OssAdd, OssSearch
from api.oss.responses import OssAddedJson, OssEntityJson, OssHistoryJson, OssHitJson, OssMemoryJson
from api.search.actions import ranked
from api.search.responses import size, size_of
from pipeline.domain.errors import Conflict, InvalidInput, NotFound
from pipeline.domain.events import EventType, FailureCode, Status
from pipeline.domain.filters import parse
from pipeline.domain.tenants import Access
from pipeline.memories import service
from pipeline.memories.delete_by_filter import DeleteRequest

router = APIRouter(tags=["open-source dialect"], route_class=StrictJson)

WAIT_S = 25.0
USUAL_LIST, LARGEST_LIST, MOST_ENTITIES = 100, 1_000, 10_000
CANCELLED = "The event was cancelled, or its scope was erased, before it had an effect."
NO_ID = "Give at least one of user_id, agent_id, run_id."
CONFIRMATION = "reset"
UNCONFIRMED = (
    "This deletes all memories of the project. To confirm it, send the header "
    f"`X-Memlane-Confirm: {CONFIRMATION}`."
)
# The open-source server knows no apps.
KINDS = ("user", "agent", "run")
WHOLE_PROJECT: Mapping[str, Any] = {"OR": ALL_IDS}

OwnerId = Annotated[str | None, Query(max_length=512)]


@router.post("/memories/")
async def add(
    request: OssAdd, call: Adding, idempotency_key: IdempotencyKey = None
) -> OssAddedJson:
    """Add messages and wait for the results.

    If the event needs longer than 25 s, `results` is empty, `status` is PENDING, and `event_id`
    names the event, which ends without the client. 502 if the event FAILED, 409 if it was
    cancelled, or its scope deleted or erased, before it had an effect.
    """
    stored = await add_turn(request, call, idempotency_key)
    if stored["status"] == Status.PENDING and request.infer:
        stored = await outcome(UUID(stored["event_id"]), call, longest_s=WAIT_S)
    if stored["status"] == Status.FAILED:
        raise await _failure(UUID(stored["event_id"]), call)
    return responses.added(stored)


async def _failure(event_id: UUID, call: ApiCall) -> Exception:
    """The error for an event that FAILED or was cancelled.

    Clients repeat after a 502. After a 409 they do not, so an erased text is not added again.
    """
    end = await call.ledger.events.end(call.project.id, event_id)
    if end.failure_code == FailureCode.CANCELLED:
        reason = end.failure_detail or CANCELLED
        return Conflict(f"{reason} (event {event_id})", code=end.failure_code)
    return HTTPException(502, f"{end.failure_detail or end.failure_code} (event {event_id})")


@router.get("/memories/")
async def list_memories(
    call: Caller,
    user_id: OwnerId = None,
    agent_id: OwnerId = None,
    run_id: OwnerId = None,
    top_k: Annotated[int, Query(ge=1, le=LARGEST_LIST)] = USUAL_LIST,
    show_expired: bool = False,
) -> ResultsJson[OssMemoryJson]:
    """The newest memories with all of these ids; without an id, those of the project (admin)."""
    ids = _ids(user_id, agent_id, run_id)
    if not ids:
        call.grant.require(Access.ADMIN)
    async with call.api.concurrency_limit.one_large(call.project.id, top_k, above=USUAL_LIST):
        memories, _ = await call.ledger.memories.page(
            call.project.id,
            parse(ids or WHOLE_PROJECT),
            expired=show_expired,
            limit=top_k,
            offset=0,
        )
        return await answer(
            lambda: {"results": [responses.memory(row) for row in memories]}, *size_of(memories)
        )


@router.post("/search/")
async def search(request: OssSearch, call: Reader) -> ResultsJson[OssHitJson]:
    """Memories that answer the query, best first; with `explain` the parts of each score."""
    async with call.api.concurrency_limit.one_large(call.project.id, request.top_k):
        ranking = await ranked(request, call)

        def build() -> ResultsJson[OssHitJson]:
            explain = request.explain is True
            return {"results": [responses.hit(row, explain=explain) for row in ranking.hits]}

        return await answer(build, *size(ranking))


@router.get("/memories/{memory_id}/")
async def get(memory_id: str, call: Caller, owner: OfOwner) -> OssMemoryJson | None:
    """A memory; null if there is none with this id, as the open-source server answers, or if it is
    not of the given ids.
    """
    try:
        row = await call.ledger.memories.get(call.project.id, uuid("memory_id", memory_id))
        require_owner(row.scope, owner)
    except NotFound:
        return None
    return responses.memory(row)


@router.put("/memories/{memory_id}/")
async def update(memory_id: str, request: UpdateRequest, call: Caller, owner: OfOwner) -> DoneJson:
    """Change text, metadata or expiration date. 404 if the memory is not of the given ids."""
    await edit_memory(memory_id, request, call, owner)
    return {"message": "Memory updated successfully!"}


@router.delete("/memories/{memory_id}/")
async def delete(memory_id: str, call: Caller, owner: OfOwner) -> DoneJson:
    """Delete one memory; its history stays. 404 if it is not of the given ids."""
    await delete_memory(memory_id, call, owner)
    return {"message": "Memory deleted successfully"}


@router.get("/memories/{memory_id}/history/")
async def history(memory_id: str, call: Caller, owner: OfOwner) -> list[OssHistoryJson]:
    """All states of a memory, oldest first; empty for an unknown id, or other ids than given."""
    entries = await call.ledger.histories.of(call.project.id, uuid("memory_id", memory_id))
    entries = [entry for entry in entries if is_of(entry.scope, owner)]
    characters = sum(len(entry.new_text or "") for entry in entries)
    return await answer(
        lambda: [responses.history(entry) for entry in entries], len(entries), characters
    )


@router.delete("/memories/")
async def delete_all(
    http: Request,
    call: Caller,
    user_id: OwnerId = None,
    agent_id: OwnerId = None,
    run_id: OwnerId = None,
) -> StartedJson:
    """Delete all memories with all of these ids. The event can be undone.

    Further conditions are those of `DELETE /v1/memories/`; a blank id and an unknown name get 400.
    """
    parts = conditions(http.query_params)
    if not _ids(user_id, agent_id, run_id):
        raise InvalidInput(NO_ID)
    event_id = await _clear({"AND": parts}, call)
    return {"message": "All relevant memories deleted", "event_id": str(event_id)}


@router.get("/entities/")
async def list_entities(call: Caller) -> list[OssEntityJson]:
    """All users, agents and runs that have memories, newest first."""
    async with call.api.concurrency_limit.one_large(call.project.id, MOST_ENTITIES):
        owners = await call.ledger.owners.page(call.project.id, limit=MOST_ENTITIES)
        shown = [row for row in owners if row.kind in KINDS and row.memories]
        return await answer(lambda: [responses.entity(row) for row in shown], rows=len(shown))


@router.delete("/entities/{entity_type}/{entity_id:path}/")
async def delete_entity(entity_type: str, entity_id: str, call: Caller) -> StartedJson:
    """Erase everything with this id, as `DELETE /v2/entities/` does. This cannot be undone."""
    begun = await erase_entity(entity_type, entity_id, call)
    await outcome(UUID(begun["event_id"]), call, longest_s=WAIT_S)
    return {"message": "Entity deleted", "event_id": begun["event_id"]}


@router.post("/reset/")
async def reset(
    admin: Admin, x_memlane_confirm: Annotated[str | None, Header()] = None
) -> StartedJson:
    """Delete all memories of the project. Requires an admin key and a confirmation in a header.

    The event can be undone.
    """
    if (x_memlane_confirm or "").strip().lower() != CONFIRMATION:
        raise InvalidInput(UNCONFIRMED)
    event_id = await _clear(WHOLE_PROJECT, admin)
    return {"message": "All memories reset", "event_id": str(event_id)}


async def _clear(filters: Mapping[str, Any], call: ApiCall) -> UUID:
    """Delete all that match. Returns the id of the event, which has ended."""
    return await service.clear(
        call.project.id,
        DeleteRequest(EventType.DELETE_ALL, parse(filters), {"filters": [filters]}),
        clearing=call.ledger.clearing,
        index=call.api.stores.index,
        dispatcher=call.api.dispatcher,
    )


def _ids(user_id: str | None, agent_id: str | None, run_id: str | None) -> dict[str, str]:
    """The ids that are given."""
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return {name: owner_id for name, owner_id in ids.items() if owner_id}
