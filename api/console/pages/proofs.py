"""Verify: seals of the project, and erasures with their receipts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Changing, Viewing
from api.dependencies import Given
from api.erasures import routes as erasure_routes
from api.erasures.requests import ErasureRequest
from api.http.ids import uuid
from api.verification import routes
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.tenants import Access

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/verify")
async def verify(
    request: Request, api: Given, session: Viewing, check: str = "", cursor: str = ""
) -> Response:
    """Compare one page of the project with its seals; the recorded heads."""
    session.grant.require(Access.ADMIN)
    page, heads = None, None
    project, grant = session.project, session.grant
    [view] = await api.stores.ledger.projects.views(project.organization_id, project.id)
    if view.tamper_evidence:
        heads = (await routes.heads(api, project, grant, 0))["results"]
        if check:
            page = await routes.verify(api, project, grant, cursor or None)
    return show(request, "verify.html", page=page, heads=heads, enabled=bool(view.tamper_evidence))


@router.get("/erasures")
async def erasures(request: Request, session: Viewing, receipt: str = "") -> Response:
    """The form of an erasure, and the form that finds a receipt."""
    if receipt.strip():
        return back(request, f"/erasures/{uuid('receipt', receipt.strip())}")
    return show(request, "erasures.html")


@router.post("/erasures")
async def erase(request: Request, api: Given, session: Changing, fields: Form) -> Response:
    """Erase a user, agent, app or run everywhere, and show the receipt."""
    fields.require("sure")
    wanted = checked(ErasureRequest, **{name: fields.optional(name) for name in ENTITY_IDS})
    begun = await erasure_routes.erase(wanted, api, session.project)
    return back(request, f"/erasures/{begun['event_id']}", done="erased")


@router.get("/erasures/{event_id}")
async def receipt(event_id: str, request: Request, api: Given, session: Viewing) -> Response:
    """The receipt of an erasure."""
    row = await erasure_routes.receipt(uuid("event_id", event_id), api, session.project)
    return show(request, "erasure.html", receipt=row)
