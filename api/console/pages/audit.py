"""Audit: who changed what, and when."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute, iter_route_contexts

from api.audit import routes
from api.console.cursors import PAGE
from api.console.page_route import PageRoute
from api.console.rendering import show
from api.console.session import Viewing
from api.http.ids import uuid

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/audit")
async def audit(request: Request, session: Viewing, before: str = "", key_id: str = "") -> Response:
    """Requests that changed something, newest first, of all keys or of one."""
    listed = await routes.audit_log(
        session,
        int(before) if before.isdecimal() and len(before) < 19 else None,
        uuid("key_id", key_id.strip()) if key_id.strip() else None,
        PAGE,
    )
    older = {"before": str(listed["next"])} if listed["next"] else None
    meanings = _meanings(request.app)
    rows = [row | {"about": meanings.get(row["action"], "")} for row in listed["results"]]
    return show(request, "audit.html", entries=rows, older=older)


def _meanings(app: FastAPI) -> dict[str, str]:
    """The first sentence of the description of each route, by method and path."""
    meanings: dict[str, str] = app.state.__dict__["_state"].setdefault("meanings", {})
    if not meanings:
        for context in iter_route_contexts(app.routes):
            route = context.route
            if isinstance(route, APIRoute):
                text = " ".join((route.endpoint.__doc__ or "").replace("`", "").split())
                about = text.partition(". ")[0]
                path = (context.path or "").replace(":path", "")
                for method in route.methods or ():
                    meanings[f"{method} {path}"] = about.rstrip(".")
    return meanings
