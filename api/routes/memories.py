"""Memories: add, list, search, and one at a time."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException

from api import shapes
from api.deps import Api, Caller, Given
from api.examples import answers
from api.schemas import AddRequest, ListRequest, ReadRequest, SearchRequest, UpdateRequest
from api.strict_json import StrictJson
from pipeline import ingest, memories, search
from pipeline.errors import InvalidInput, NotFound
from pipeline.ledger.events import FINAL
from pipeline.ledger.filtering import matches, unexpired
from pipeline.ledger.projects import Project

router = APIRouter(tags=["memories"], route_class=StrictJson)

PAGE_SIZE, LARGEST_PAGE = 100, 200
# No ledger has so many; an offset beyond is more than it can count.
LAST_PAGE = 10**9

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Any string of yours that names this add: sent again, it adds nothing.",
    ),
]


@router.post("/v3/memories/add/", responses=answers("add"))
async def add(
    request: AddRequest, api: Given, project: Caller, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """Accept a conversation turn.

    With `infer` (the default) it answers PENDING with an `event_id` after one durable commit; poll
    `/v1/event/{event_id}/` for the receipt. With `infer=false` the messages are stored verbatim and
    the answer waits for it.

    With an `Idempotency-Key` it is safe to send again: the same key and body give the same
    `event_id`, the same key with another body is refused with 409.
    """
    event_id = await _accept(request, api, project, idempotency_key)
    if request.infer:
        return {"event_id": str(event_id), "status": "PENDING"}
    return await _outcome(event_id, api, project)


@router.post("/v1/memories/")
async def add_v1(
    request: AddRequest, api: Given, project: Caller, idempotency_key: IdempotencyKey = None
) -> Any:
    """Accept a turn as older clients do; `async_mode=false` waits for the results."""
    event_id = await _accept(request, api, project, idempotency_key)
    if request.infer and request.async_mode:
        said = "Memory processing has been queued for background execution"
        results = [{"message": said, "status": "PENDING", "event_id": str(event_id)}]
    else:
        results = (await _outcome(event_id, api, project)).get("results", [])
    return results if request.output_format == "v1.0" else {"results": results}


async def _accept(request: AddRequest, api: Api, project: Project, key: str | None) -> UUID:
    scope = request.scope(project)
    api.gate.admit(scope)
    return await ingest.accept(
        scope,
        request.turns(),
        request.options(),
        said_at=request.timestamp,
        ledger=api.stores.ledger,
        dispatcher=api.dispatcher,
        key=key,
    )


async def _outcome(event_id: UUID, api: Api, project: Project) -> dict[str, Any]:
    """The event's end, or PENDING where the workers take longer than a request may."""
    if not await api.watch.ended(event_id, timeout_s=api.settings.sync_wait_s):
        return {"event_id": str(event_id), "status": "PENDING", "results": []}
    event = shapes.event(await api.stores.ledger.events.get(project.id, event_id))
    said = event["error"] or event["note"] or "Memories stored."
    return {
        "message": said,
        "status": event["status"],
        "event_id": str(event_id),
        "results": event["results"],
    }


@router.post("/v3/memories/")
async def list_memories(
    request: ListRequest,
    api: Given,
    project: Caller,
    http: Request,
    page: Annotated[int | None, Query()] = None,
    page_size: Annotated[int | None, Query()] = None,
) -> dict[str, Any]:
    """A page of memories that match the filters, newest first.

    With `after_event` it comes once that event has ended, or `wait` seconds are over, and says
    which.
    """
    number, size = paging(
        request.page if page is None else page,
        request.page_size if page_size is None else page_size,
    )
    where = matches(project.id, request.tree())
    if not request.show_expired:
        where = where & unexpired()
    token = await _caught_up(request, api, project)
    found, count = await api.stores.ledger.memories.page(
        where, limit=size, offset=(number - 1) * size
    )
    refuse_beyond(number, count, size)
    results = [shapes.memory(one) for one in found]
    return shapes.page(results, count=count, page=number, size=size, url=http.url) | token


@router.post("/v3/memories/search/", responses=answers("search"))
async def search_memories(request: SearchRequest, api: Given, project: Caller) -> dict[str, Any]:
    """Memories that answer the query, best first, and the relations around them.

    `pending` says how many events of the ids in the filter have not ended. With `after_event` the
    answer comes once that event has, or `wait` seconds are over, and says which.
    """
    query = search.Query(
        text=request.query,
        filter=request.tree(),
        top_k=request.top_k,
        threshold=request.threshold,
        show_expired=request.show_expired,
    )
    token = await _caught_up(request, api, project)
    stores = api.stores
    found = await search.search(
        project.id, query, ledger=stores.ledger, embedder=stores.embedder, index=stores.index
    )
    return shapes.search(found) | token


async def _caught_up(request: ReadRequest, api: Api, project: Project) -> dict[str, Any]:
    """Wait for the event that the reader wants to see the effects of; say how it stands."""
    if request.after_event is None:
        return {}
    ledger = api.stores.ledger.events
    status = await ledger.status(project.id, request.after_event)
    if status not in FINAL and request.wait:
        await api.watch.ended(request.after_event, timeout_s=request.wait)
        status = await ledger.status(project.id, request.after_event)
    return {"after_event_status": shapes.shown(status), "after_event_ended": status in FINAL}


@router.get("/v1/memories/{memory_id}/")
async def get(memory_id: str, api: Given, project: Caller) -> dict[str, Any]:
    return shapes.memory(await api.stores.ledger.memories.get(project.id, uuid(memory_id)))


@router.put("/v1/memories/{memory_id}/")
async def update(
    memory_id: str, request: UpdateRequest, api: Given, project: Caller
) -> dict[str, Any]:
    """Change text, metadata, timestamp or expiration date; the old state stays in the history."""
    values = request.values()
    if not values:
        raise InvalidInput("Give at least one of text, metadata, timestamp, expiration_date.")
    stores = api.stores
    return shapes.memory(
        await memories.edit(
            project.id,
            uuid(memory_id),
            values,
            memories=stores.ledger.memories,
            embedder=stores.embedder,
            index=stores.index,
        )
    )


@router.delete("/v1/memories/{memory_id}/")
async def delete(memory_id: str, api: Given, project: Caller) -> dict[str, str]:
    stores = api.stores
    await memories.retire(
        project.id, uuid(memory_id), memories=stores.ledger.memories, index=stores.index
    )
    return {"message": "Memory deleted successfully!"}


@router.get("/v1/memories/{memory_id}/history/")
async def history(memory_id: str, api: Given, project: Caller) -> list[dict[str, Any]]:
    """Every state the memory had, oldest first, with the reason of each change."""
    entries = await api.stores.ledger.memories.history(project.id, uuid(memory_id))
    if not entries:
        raise NotFound("Memory not found!")
    return [shapes.history(entry) for entry in entries]


def uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput("memory_id should be a valid UUID") from None


def paging(page: int | None, size: int | None) -> tuple[int, int]:
    """Errors: InvalidInput; the cloud's 404 for a page that cannot be."""
    number, size = 1 if page is None else page, PAGE_SIZE if size is None else size
    if number < 1 or not 1 <= size <= LARGEST_PAGE:
        raise InvalidInput(f"page starts at 1, page_size is 1 to {LARGEST_PAGE}.")
    if number > LAST_PAGE:
        raise HTTPException(404, "Invalid page.")
    return number, size


def refuse_beyond(number: int, count: int, size: int) -> None:
    if number > 1 and (number - 1) * size >= count:
        raise HTTPException(404, "Invalid page.")
