"""User tokens: create one with the address of the user's page, list and revoke them."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, number_in, show
from api.console.session import Administering, Changing, Viewing
from api.tenants import routes as organization_routes
from api.tenants.requests import ProjectUpdateRequest
from api.user_tokens import routes
from api.user_tokens.requests import UserTokenRequest
from pipeline.domain.tenants import Right

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/user-tokens")
async def tokens(request: Request, session: Viewing, user_id: str | None = None) -> Response:
    """The valid tokens of the project, or of one user."""
    listed = await routes.list_user_tokens(session, user_id or None)
    return show(
        request,
        "user_tokens.html",
        tokens=listed["results"],
        rights=list(Right),
        origins=session.project.allowed_origins,
    )


@router.post("/user-tokens")
async def make(request: Request, session: Changing, fields: Form) -> Response:
    """Create a token; this page alone shows it."""
    minutes = fields.text("minutes")
    wanted = checked(
        UserTokenRequest,
        user_id=fields.text("user_id"),
        rights=fields.all("rights"),
        expires_in_s=number_in(minutes, digits=5) * 60 if minutes else None,
    )
    made = await routes.make_user_token(wanted, session)
    path = urlsplit(session.api.settings.public_url or "").path.rstrip("/") + "/user/"
    return show(request, "user_token.html", made=made, address=f"{path}#{made['token']}")


@router.post("/user-tokens/origins")
async def set_origins(request: Request, session: Administering, fields: Form) -> Response:
    """Set the origins that may embed the user's page, and call the API with tokens."""
    change = checked(ProjectUpdateRequest, allowed_origins=fields.text("origins").split())
    await organization_routes.update_project(change, session)
    return back(request, "/user-tokens", done="saved")


@router.post("/user-tokens/{token_id}/revoke")
async def revoke(token_id: str, request: Request, session: Changing) -> Response:
    """Revoke a token."""
    await routes.revoke_user_token(token_id, session)
    return back(request, "/user-tokens", done="token-revoked")
