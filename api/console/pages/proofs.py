"""Verify: seals of the project, and erasures with their receipts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.console.cursors import PAGE
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Changing, Viewing
from api.erasures import routes as erasure_routes
from api.erasures.requests import ErasureRequest
from api.http.ids import uuid
from api.http.shared_responses import json_of
from api.verification import routes
from api.verification.responses import HeadJson
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.tenants import Access

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

# Greater than the number of any head.
NEWEST = 2**62


@router.get("/verify")
async def verify(
    request: Request,
    session: Viewing,
    check: str = "",
    cursor: str = "",
    before: Annotated[int, Query(ge=0, le=NEWEST)] = NEWEST,
) -> Response:
    """Compare one page of the project with its seals; the recorded heads, newest first.

    `before`: number of the last head of the page before.
    """
    session.grant.require(Access.ADMIN)
    page, heads = None, list[HeadJson]()
    project = session.project
    [view] = await session.ledger.projects.views(project.organization_id, project.id)
    if view.tamper_evidence:
        rows = await session.ledger.seals.newest_checkpoints(project.id, before=before, limit=PAGE)
        heads = [json_of(HeadJson, row) for row in rows]
        if check:
            page = await routes.verify(session, cursor or None)
    # The next page of heads does not check the project again.
    next_page = {"check": "", "cursor": "", "before": str(heads[-1]["number"])} if heads else None
    older = next_page if len(heads) == PAGE else None
    enabled = bool(view.tamper_evidence)
    return show(request, "verify.html", page=page, heads=heads, older=older, enabled=enabled)


@router.get("/erasures")
async def erasures(request: Request, session: Viewing, receipt: str = "") -> Response:
    """The form of an erasure, and the form that finds a receipt."""
    if receipt.strip():
        return back(request, f"/erasures/{uuid('receipt', receipt.strip())}")
    return show(request, "erasures.html")


@router.post("/erasures")
async def erase(request: Request, session: Changing, fields: Form) -> Response:
    """Erase a user, agent, app or run everywhere, and show the receipt."""
    fields.require("sure")
    wanted = checked(ErasureRequest, **{name: fields.optional(name) for name in ENTITY_IDS})
    begun = await erasure_routes.erase(wanted, session)
    return back(request, f"/erasures/{begun['event_id']}", done="erased")


@router.get("/erasures/{event_id}")
async def receipt(event_id: str, request: Request, session: Viewing) -> Response:
    """The receipt of an erasure."""
    row = await erasure_routes.receipt(uuid("event_id", event_id), session)
    return show(request, "erasure.html", receipt=row)
