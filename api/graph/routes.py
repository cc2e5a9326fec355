"""The graph of a scope: the neighbourhood of an entity at a time, and edits of entities."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.graph import responses as graph_responses
from api.graph.query import NeighbourhoodQueried
from api.graph.requests import MergeRequest, RenameRequest
from api.graph.responses import DeletedEntityJson, GraphEntityJson, GraphRowJson
from api.http.ids import SomeEntityIds
from api.http.paging import Paged
from api.http.shared_responses import PageJson
from api.http.strict_json import StrictJson
from api.search import responses as search_responses
from api.search.responses import RelationPageJson
from pipeline.domain.filters import moment

router = APIRouter(prefix="/v1/graph", tags=["graph"], route_class=StrictJson)


@router.get("/")
async def neighbourhood(
    call: Caller, http: Request, query: NeighbourhoodQueried, page: Paged, ids: SomeEntityIds
) -> RelationPageJson:
    """The relations around an entity, by name or id, nearest first, up to `hops` away; without an
    entity all relations of these ids, newest first.

    `valid_at`: those that held in the world at that time; `as_of`: those that Memlane knew then.
    Relations of memories past their expiration date are left out without `show_expired`.
    `incomplete`: relations may be missing, because more than 1,000 scopes have these ids.
    """
    times = query.times()
    graph = call.ledger.graph
    if query.entity is None and query.entity_id is None:
        rows, count = await graph.page(
            call.project.id, ids, times=times, expired=query.show_expired, **page.window
        )
        incomplete = False
    else:
        near, incomplete = await graph.around(
            call.project.id,
            ids,
            name=query.entity,
            node_id=query.entity_id,
            hops=query.hops,
            times=times,
            expired=query.show_expired,
        )
        rows, count = near[page.offset : page.offset + page.size], len(near)
    envelope = page.envelope([search_responses.path(row) for row in rows], count, http)
    return {**envelope, "incomplete": incomplete}


@router.get("/export/")
async def export(
    call: Caller, http: Request, page: Paged, ids: SomeEntityIds, as_of: str | None = None
) -> PageJson[GraphRowJson]:
    """Every entity and relation of these ids with both times, merged and ended ones too, entities
    first, oldest first; `as_of`: as it was stored at that time.
    """
    at = None if as_of is None else moment("as_of", as_of)
    rows, count = await call.ledger.graph_export.page(call.project.id, ids, as_of=at, **page.window)
    return page.envelope(cast("list[GraphRowJson]", rows), count, http)


ENTITY = "/entities/{node_id}/"


@router.get(ENTITY)
async def get_entity(node_id: UUID, call: Caller) -> GraphEntityJson:
    """An entity, with the entities that are merged into it."""
    return graph_responses.entity(await call.ledger.graph_editing.get(call.project.id, node_id))


@router.put(ENTITY)
async def rename_entity(node_id: UUID, request: RenameRequest, call: Caller) -> GraphEntityJson:
    """Change the name or the type of an entity."""
    editing = call.ledger.graph_editing
    row = await editing.rename(call.project.id, node_id, name=request.name, kind=request.kind)
    return graph_responses.entity(row)


@router.delete(ENTITY)
async def delete_entity(node_id: UUID, call: Caller) -> DeletedEntityJson:
    """Delete an entity, what is merged into it, and their relations, for good. Memories stay."""
    count = await call.ledger.graph_editing.erase(call.project.id, node_id)
    return {"message": "Entity deleted.", "relations": count}


@router.post(ENTITY + "merge/")
async def merge_entity(node_id: UUID, request: MergeRequest, call: Caller) -> GraphEntityJson:
    """Merge an entity into another one of the same ids: both stay, and reads show them as one."""
    editing = call.ledger.graph_editing
    return graph_responses.entity(await editing.merge(call.project.id, node_id, request.into))


@router.post(ENTITY + "split/")
async def split_entity(node_id: UUID, call: Caller) -> GraphEntityJson:
    """Reverse the merge of an entity."""
    return graph_responses.entity(await call.ledger.graph_editing.split(call.project.id, node_id))
