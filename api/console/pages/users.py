"""Users: the users, agents, apps and runs of the project, and a search by a part of their id."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.console.page_route import PageRoute
from api.console.rendering import page_number, show_beside
from api.console.session import Viewing
from api.http.paging import PageRange
from pipeline.domain.errors import InvalidInput
from pipeline.tenants.owners import KINDS, LOOKED_THROUGH

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

SHOWN = 50
# Longest part of an id or name.
LONGEST = 256


@router.get("/users")
async def users(request: Request, session: Viewing, part: str = "", kind: str = "") -> Response:
    """Users, agents, apps and runs, newest first. `part`: those with it in their id or name."""
    if kind and kind not in KINDS:
        raise InvalidInput(f"kind is one of {', '.join(KINDS)}, or empty.")
    if len(part) > LONGEST:
        raise InvalidInput(f"The part of an id or name has at most {LONGEST} characters.")
    owners, project_id = session.ledger.owners, session.project.id
    page = PageRange(page_number(request), SHOWN)
    wanted, more = kind or None, SHOWN + 1
    if part := part.strip():
        rows = await owners.matching(project_id, part, kind=wanted, limit=more)
    else:
        rows = await owners.page(project_id, kind=wanted, limit=more, offset=page.offset)
    return await show_beside(
        request,
        "users.html",
        lambda: {
            "rows": rows[:SHOWN],
            "kinds": [*KINDS],
            "part": part,
            "kind": kind,
            "has_more": len(rows) > SHOWN,
            "older": {"page": str(page.number + 1)} if len(rows) > SHOWN and not part else None,
            "looked_through": LOOKED_THROUGH,
        },
    )
