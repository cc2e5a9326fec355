"""Users, agents, apps and runs: list, register and erase them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.dependencies import ApiCall
from api.entities import responses as owner_responses
from api.entities.actions import erase_entity, kind_of
from api.entities.requests import RegisterRequest
from api.entities.responses import EntityJson, EntityPageJson, FilterValuesJson, RegisteredJson
from api.events.query import EVENT_TYPES
from api.http import paging
from api.http.large_answers import answer
from api.http.paging import Numbered, page_of, size_bytes
from api.http.shared_responses import StartedJson
from api.http.strict_json import StrictJson
from api.search.responses import KEYS_OF_A_ROW
from pipeline.domain.errors import InvalidInput, NotFound
from pipeline.domain.filters import ENTITY_IDS
from pipeline.tenants.owners import KINDS, Owner

router = APIRouter(tags=["entities"], route_class=StrictJson)

# The Python client reads only the first page, and its reset() deletes what it read.
PAGE_SIZE = LARGEST_PAGE = 10_000
OFFERED_USERS = 1_000


@router.get("/v1/entities/")
async def list_entities(call: Caller, http: Request, query: Numbered) -> EntityPageJson:
    """All users, agents, apps and runs, newest first, with their numbers of memories."""
    page = page_of(
        query.page,
        query.page_size,
        offset=query.offset,
        may_end=True,
        usual=PAGE_SIZE,
        largest=LARGEST_PAGE,
    )
    stored = call.ledger.owners
    async with call.api.concurrency_limit.one_large(call.project.id, page.size):
        read = await stored.page(call.project.id, **page.window)
        owners = await _described(read, call)
        numbers = await stored.totals(call.project.id)

        def build() -> EntityPageJson:
            rows = [owner_responses.owner(row, call.project) for row in owners]
            return {
                **page.envelope(rows, sum(numbers.values()), http),
                "total_users": numbers["user"],
                "total_agents": numbers["agent"],
                "total_apps": numbers["app"],
                "total_runs": numbers["run"],
            }

        keys = sum(len(row.metadata or ()) for row in owners)
        return await answer(build, rows=len(owners) + keys // KEYS_OF_A_ROW)


async def _described(page: Sequence[Owner], call: ApiCall) -> list[Owner]:
    """The owners of a page with their metadata; only as many as are sure to end it by its bytes."""
    owners: list[Owner] = []
    size = 0
    async for part in call.ledger.owners.with_metadata(call.project.id, page):
        owners += part
        size += sum(size_bytes(owner.metadata) for owner in part)
        if size > paging.LARGEST_ANSWER_BYTES:
            break
    return owners


@router.get("/v1/entities/filters/")
async def filters(call: Caller) -> FilterValuesJson:
    """The values that filters of lists and searches accept. `users`: the newest 1,000."""
    users = await call.ledger.owners.page(call.project.id, kind="user", limit=OFFERED_USERS)
    return {
        "event_type": [*EVENT_TYPES],
        "categories": await call.ledger.memories.categories(call.project.id),
        "users": [user.id for user in users],
        "parameters": [owner_responses.parameter(name) for name in ENTITY_IDS],
    }


@router.get("/v2/entities/{entity_type}/{entity_id:path}/")
async def get(entity_type: str, entity_id: str, call: Caller) -> list[EntityJson]:
    """One user, agent, app or run, as a list with one element."""
    row = await _get_owner(kind_of(entity_type), entity_id, call)
    return [owner_responses.owner(row, call.project)]


@router.delete("/v1/entities/{entity_type}/{entity_id:path}/")
async def delete_by_number(entity_type: str, entity_id: str, call: Caller) -> StartedJson:
    """Erase everything with this id, which may also be the number that the registration returned.

    Otherwise the same as version 2.
    """
    kind = kind_of(entity_type)
    owners = call.ledger.owners
    if entity_id.isdecimal() and not await owners.named(call.project.id, kind, entity_id):
        page = await owners.page(call.project.id, kind=kind, limit=PAGE_SIZE)
        numbers = {
            str(owner_responses.number(call.project.id, kind, row.id)): row.id for row in page
        }
        entity_id = numbers.get(entity_id, entity_id)
    return await erase_entity(entity_type, entity_id, call)


@router.delete("/v2/entities/{entity_type}/{entity_id:path}/")
async def delete(entity_type: str, entity_id: str, call: Caller) -> StartedJson:
    """Erase everything with this id: memories, history, messages. This cannot be undone.

    An unknown id is not an error: it may just have been erased. The receipt is at
    `/v1/erasures/{event_id}/`.
    """
    return await erase_entity(entity_type, entity_id, call)


def registering(kind: str) -> Callable[..., Awaitable[RegisteredJson]]:
    """A handler that registers entities of one kind."""

    async def register(request: RegisterRequest, call: Caller) -> RegisteredJson:
        owner_id = request.id_of(kind)
        if owner_id is None:
            raise InvalidInput(f"{KINDS[kind]} is missing.")
        await call.ledger.owners.register(
            call.project.id,
            kind,
            owner_id,
            name=request.name or owner_id,
            metadata=request.metadata,
        )
        return owner_responses.registered(await _get_owner(kind, owner_id, call), call.project)

    register.__doc__ = f"Register {kind}s with a name and metadata before their first add."
    return register


for _kind in KINDS:
    router.post(f"/v1/{_kind}s/", status_code=201, name=f"register_{_kind}")(registering(_kind))

NO_SUCH_ENTITY = "Entity not found!"


async def _get_owner(kind: str, entity_id: str, call: ApiCall) -> Owner:
    owners = await call.ledger.owners.with_id(call.project.id, entity_id, kind=kind)
    if not owners:
        raise NotFound(NO_SUCH_ENTITY)
    return owners[0]
