"""Graph: entities and relations at a time, with rename, merge, split and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import POLICY, back, page_number, show
from api.console.session import Changing, Viewing
from api.graph import routes
from api.graph.query import NeighbourhoodQuery
from api.graph.requests import MergeRequest, RenameRequest
from api.http.ids import FormIds, uuid
from api.http.paging import PageRange
from api.search.responses import RelationJson

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

# Hashes of the styles that force-graph adds to the page: the policy allows no others.
STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=' "
    "'sha256-9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY='"
)
# Relations in a drawing, and rows of a page beneath it.
DRAWN, SHOWN = 500, 100


@router.get("/graph")
async def graph(
    request: Request,
    session: Viewing,
    ids: FormIds,
    entity: str = "",
    hops: str = "1",
    as_of: str = "",
    valid_at: str = "",
) -> Response:
    """The relations of these ids, or those around an entity: the drawing and a page of its rows."""
    rows: list[RelationJson] = []
    incomplete, count, number = False, 0, page_number(request)
    drawing, place = divmod((number - 1) * SHOWN, DRAWN)
    if ids:
        query = NeighbourhoodQuery(
            entity=entity or None,
            hops=int(hops) if hops in ("1", "2", "3") else 1,
            as_of=as_of or None,
            valid_at=valid_at or None,
        )
        answer = await routes.neighbourhood(
            session, request, query, PageRange(drawing + 1, DRAWN), ids
        )
        rows, count, incomplete = answer["results"], answer["count"], answer["incomplete"]
    page = show(
        request, "graph.html", relations=rows[place : place + SHOWN], drawn=len(rows), count=count,
        incomplete=incomplete, picture=_picture(rows), asked=bool(ids),
        older={"page": str(number + 1)} if number * SHOWN < count else None,
    )  # fmt: skip
    page.headers["Content-Security-Policy"] = POLICY.replace("style-src", f"style-src {STYLES}")
    return page


@router.get("/graph/{node_id}")
async def entity(node_id: str, request: Request, session: Viewing, ids: FormIds) -> Response:
    """One entity, with those that are merged into it. With ids: also those it can merge into."""
    row = await routes.get_entity(uuid("node_id", node_id), session)
    others: list[dict[str, Any]] = []
    if ids:
        answer = await routes.neighbourhood(
            session, request, NeighbourhoodQuery(), PageRange(1, DRAWN), ids
        )
        nodes = _picture(answer["results"])["nodes"]
        others = sorted(
            (node for node in nodes if node["id"] != row["id"]), key=lambda node: node["name"]
        )
    return show(request, "entity.html", entity=row, others=others)


@router.post("/graph/{node_id}/rename")
async def rename(node_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Change name or type."""
    wanted = checked(RenameRequest, name=fields.optional("name"), type=fields.optional("type"))
    await routes.rename_entity(uuid("node_id", node_id), wanted, session)
    return back(request, f"/graph/{node_id}", done="renamed")


@router.post("/graph/{node_id}/merge")
async def merge(node_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Merge into another entity of the same ids."""
    into: UUID = uuid("into", fields.text("into"))
    wanted = MergeRequest(into=into)
    await routes.merge_entity(uuid("node_id", node_id), wanted, session)
    return back(request, f"/graph/{into}", done="merged")


@router.post("/graph/{node_id}/split")
async def split(node_id: str, request: Request, session: Changing) -> Response:
    """Reverse a merge."""
    await routes.split_entity(uuid("node_id", node_id), session)
    return back(request, f"/graph/{node_id}", done="split")


@router.post("/graph/{node_id}/delete")
async def delete(node_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Delete an entity with its relations."""
    fields.require("sure")
    await routes.delete_entity(uuid("node_id", node_id), session)
    return back(request, "/graph", done="entity-deleted")


def _picture(rows: Sequence[RelationJson]) -> dict[str, Any]:
    """Nodes and links for the drawing."""
    nodes: dict[str, dict[str, Any]] = {}
    for row in rows:
        nodes[row["source_id"]] = {"id": row["source_id"], "name": row["source"]}
        nodes[row["target_id"]] = {"id": row["target_id"], "name": row["target"]}
    links = [
        {
            "source": row["source_id"],
            "target": row["target_id"],
            "name": row["relationship"],
            "from": row["valid_from"].timestamp(),
            "to": row["valid_to"].timestamp() if row["valid_to"] else None,
            "event": row["event_id"],
        }
        for row in rows
    ]
    return {"nodes": list(nodes.values()), "links": links}
