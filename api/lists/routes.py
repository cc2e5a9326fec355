"""Lists of memories, in the formats of all three API versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.auth.users import OfUser, UserReading
from api.dependencies import ApiCall
from api.http.large_answers import answer
from api.http.paging import (
    LARGEST_ANSWER_BYTES,
    Numbered,
    Paged,
    PageQuery,
    PageRange,
    fitting,
    page_of,
)
from api.http.shared_responses import PageJson
from api.http.strict_json import StrictJson
from api.lists.after_event import caught_up
from api.lists.query import ListQueried
from api.lists.requests import ListRequest
from api.lists.responses import ListPageJson
from api.memories import responses as memory_responses
from api.memories.responses import MemoryJson, MemoryOfOwnerJson, MemoryRowJson
from api.search.responses import size_of
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import Filter, require_id
from pipeline.domain.memories import Memory
from pipeline.tenants.owners import KINDS

router = APIRouter(tags=["memories"], route_class=StrictJson)
# After the router of memories, because its parameter also matches the fixed words of other paths.
of_owner = APIRouter(tags=["memories"], route_class=StrictJson)

# Rows of a page from which it is large: 200 long texts take 0.2 s of the event loop.
LARGE_PAGE = 100


@router.post("/v3/memories/")
async def list_memories(
    request: ListRequest, call: UserReading, user: OfUser, http: Request, numbered: Numbered
) -> ListPageJson:
    """A page of memories that match the filters, newest first.

    With `after_event` the response waits for the end of that event, at most `wait` seconds, and
    contains its status.
    """
    page = _page(request, numbered)
    tree = request.tree(user)
    token = await caught_up(request, call, user)
    async with call.api.concurrency_limit.one_large(call.project.id, page.size, above=LARGE_PAGE):
        memories, count = await read_page(request, tree, page, call)

        def build() -> ListPageJson:
            return {**page.envelope(_rows(request, memories), count, http), **token}

        return await answer(build, *size_of(memories))


@router.post("/v2/memories/")
async def list_version_2(
    request: ListRequest, call: UserReading, user: OfUser, http: Request, numbered: Numbered
) -> list[MemoryRowJson] | PageJson[MemoryRowJson]:
    """Same as version 3, but a bare list unless page and page_size are both given."""
    page = _page(request, numbered)
    paged = (numbered.page or request.page) and (numbered.page_size or request.page_size)
    paged = bool(paged) or numbered.offset is not None
    return await _listed(request, page, call, user, http, paged=paged)


@router.get("/v1/memories/")
async def list_version_1(
    call: UserReading, user: OfUser, http: Request, query: ListQueried, numbered: Numbered
) -> list[MemoryRowJson] | PageJson[MemoryRowJson]:
    """The memories of a user, agent, app or run, newest first: a bare list, or a page if page and
    page_size are both given. `metadata[key]=value` filters by one key of the metadata.
    """
    request = query.request(http)
    paged = bool(numbered.page and numbered.page_size) or numbered.offset is not None
    page = page_of(
        numbered.page, numbered.page_size or query.limit, offset=numbered.offset, may_end=paged
    )
    return await _listed(request, page, call, user, http, paged=paged)


async def _listed(
    request: ListRequest,
    page: PageRange,
    call: ApiCall,
    user: str | None,
    http: Request,
    *,
    paged: bool,
) -> list[MemoryRowJson] | PageJson[MemoryRowJson]:
    """A page in its envelope, or a bare list."""
    async with call.api.concurrency_limit.one_large(call.project.id, page.size, above=LARGE_PAGE):
        memories, count = await read_page(request, request.tree(user), page, call)

        def build() -> list[MemoryRowJson] | PageJson[MemoryRowJson]:
            rows = _rows(request, memories)
            return page.envelope(rows, count, http) if paged else _bare(rows)

        return await answer(build, *size_of(memories))


def _bare(rows: list[MemoryRowJson]) -> list[MemoryRowJson]:
    """A list without an envelope. Errors: InvalidInput if it is too large, as it has no `next`."""
    if len(fitting(rows)) < len(rows):
        raise InvalidInput(
            f"These memories have more than {LARGEST_ANSWER_BYTES:,} bytes; read them in pages,"
            " with page and page_size, or select fields."
        )
    return rows


@of_owner.get("/v1/memories/{entity_type}/{entity_id:path}/")
async def list_of(
    entity_type: str, entity_id: str, call: Caller, http: Request, page: Paged
) -> PageJson[MemoryOfOwnerJson]:
    """The memories of one user, agent, app or run."""
    if entity_type not in KINDS:
        raise InvalidInput("Invalid entity type")
    request = ListRequest(filters={KINDS[entity_type]: {"eq": require_id(entity_id)}})
    async with call.api.concurrency_limit.one_large(call.project.id, page.size, above=LARGE_PAGE):
        memories, count = await read_page(request, request.tree(), page, call)
        inputs = await call.ledger.histories.inputs(call.project.id, [row.id for row in memories])

        def build() -> PageJson[MemoryOfOwnerJson]:
            rows = [memory_responses.of_owner(row, inputs.get(row.id)) for row in memories]
            return page.envelope(rows, count, http)

        return await answer(build, *size_of(memories))


def _rows(request: ListRequest, memories: Sequence[Memory]) -> list[MemoryJson]:
    return [memory_responses.only(memory_responses.memory(row), request.fields) for row in memories]


async def read_page(
    request: ListRequest, tree: Filter, page: PageRange, call: ApiCall
) -> tuple[Sequence[Memory], int]:
    """A page of memories, current or at the time of the request, and the number of all."""
    snapshot, ledger = request.snapshot(), call.ledger
    if snapshot.is_current:
        read = ledger.memories.page
    else:
        read = partial(ledger.versions.page, snapshot=snapshot)
    return await read(
        call.project.id,
        tree,
        expired=request.show_expired,
        older=request.show_superseded,
        **page.window,
    )


def _page(request: ListRequest, numbered: PageQuery) -> PageRange:
    """The page of the query string or of the body: clients use both."""
    number, size = numbered.page, numbered.page_size
    if number is None and numbered.offset is None:
        number = request.page
    return page_of(
        number,
        request.page_size if size is None else size,
        offset=numbered.offset,
        may_end=True,
    )
