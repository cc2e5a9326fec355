"""The graph of a scope: the neighbourhood of an entity, at a time."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request

from api.auth.tenant import Caller
from api.dependencies import Given
from api.http.paging import Paged
from api.http.strict_json import StrictJson
from api.views import search as search_views
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import moment
from pipeline.graph.views import GraphTimes

router = APIRouter(prefix="/v1/graph", tags=["graph"], route_class=StrictJson)

LONGEST_NAME = 300
Name = Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME)]


@router.get("/")
async def neighbourhood(
    api: Given,
    project: Caller,
    http: Request,
    page: Paged,
    user_id: str | None = None,
    agent_id: str | None = None,
    app_id: str | None = None,
    run_id: str | None = None,
    entity: Name = None,
    entity_id: UUID | None = None,
    hops: Annotated[int, Query(ge=1, le=3)] = 1,
    as_of: str | None = None,
    valid_at: str | None = None,
) -> dict[str, Any]:
    """The relations around an entity, by name or id, nearest first, up to `hops` away; without an
    entity all relations of these ids, newest first.

    `valid_at`: those that held in the world at that time; `as_of`: those that were believed then.
    """
    given = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    pinned = {name: value for name, value in given.items() if value}
    if not pinned:
        raise InvalidInput(f"Give at least one of {', '.join(given)}.")
    times = GraphTimes(
        None if as_of is None else moment("as_of", as_of),
        None if valid_at is None else moment("valid_at", valid_at),
    )
    graph = api.stores.ledger.graph
    if entity is None and entity_id is None:
        rows, count = await graph.page(
            project.id, pinned, times=times, limit=page.limit, offset=page.offset
        )
    else:
        near = await graph.around(
            project.id, pinned, name=entity, node_id=entity_id, hops=hops, times=times
        )
        rows, count = near[page.offset : page.offset + page.limit], len(near)
    return page.envelope([search_views.path(row) for row in rows], count, http)
