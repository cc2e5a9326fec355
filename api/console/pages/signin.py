"""Sign in with an API key or a one-time link, and out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from api.audit import recording as audit
from api.console.forms import Form
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import (
    COOKIE,
    ConsoleSession,
    Genuine,
    base_of,
    grant_of,
    is_own,
    lifetime,
    remember,
    require_same_origin,
)
from api.console.unsent import carried_form
from api.dependencies import Api, Given
from pipeline.tenants.secret import Secret

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

WRONG_KEY = "This API key is not valid, or has ended."
ENDED_KEY = "The API key of this link was revoked or has ended. Sign in with another API key."
USED_LINK = "This link was used, or its ten minutes are over. Sign in with an API key."


@router.get("")
@router.get("/")
async def start(request: Request) -> Response:
    """Lead to the first page."""
    return back(request, "/live")


@router.get("/sign-in")
async def form(request: Request, next: str = "") -> Response:
    """The form for an API key."""
    return show(request, "signin.html", next=next, error=None, unsent=None)


@router.post("/sign-in")
async def sign_in(request: Request, api: Given, fields: Form) -> Response:
    """Open a session for an API key, and lead to the page that was asked for."""
    require_same_origin(request, api.settings)
    address = request.client.host if request.client else ""
    key, wanted = fields.text("key"), fields.text("next")
    grant = await api.keys.grant(key, address) if key else None
    if grant is None:
        return show(
            request, "signin.html", status=401, next=wanted, error=WRONG_KEY,
            unsent=carried_form(fields),
        )  # fmt: skip
    await audit.begin(request, api.stores.ledger.audit, grant, grant.project.id)
    token = await api.stores.ledger.console_sessions.open(grant, lifetime(api.settings))
    await _end_replaced(request, api)
    if is_own(request, api.settings) and (unsent := carried_form(fields)) is not None:
        request.state.session = ConsoleSession.of(api, grant, token.key)
        page = show(request, "unsent.html", unsent=unsent)
        remember(page, request, token, api.settings)
        return page
    return _entered(request, api, token, wanted)


@router.get("/enter/{token}")
async def link(token: str, request: Request) -> Response:
    """A button that uses a one-time link, because programs that preview links send GET requests."""
    return show(request, "enter.html", token=token)


@router.post("/enter/{token}")
async def enter(token: str, request: Request, api: Given) -> Response:
    """Open the session of a one-time link."""
    require_same_origin(request, api.settings)
    sessions = api.stores.ledger.console_sessions
    opened = await sessions.redeem(Secret(token), lifetime(api.settings))
    if opened is None:
        return show(request, "signin.html", status=401, next="", error=USED_LINK, unsent=None)
    if await grant_of(opened.key, api) is None:
        await sessions.close(opened)
        return show(request, "signin.html", status=401, next="", error=ENDED_KEY, unsent=None)
    await _end_replaced(request, api)
    return _entered(request, api, opened, "")


@router.post("/sign-out")
async def sign_out(request: Request, session: Genuine) -> Response:
    """End the session."""
    await session.ledger.console_sessions.close(Secret(session.token))
    response = back(request, "/sign-in", done="signed-out")
    response.delete_cookie(COOKIE, path=base_of(session.api.settings))
    return response


async def _end_replaced(request: Request, api: Api) -> None:
    """End the session whose cookie the new one replaces: no browser can end it later."""
    if replaced := request.cookies.get(COOKIE):
        await api.stores.ledger.console_sessions.close(Secret(replaced))


def _entered(request: Request, api: Api, token: Secret, wanted: str) -> Response:
    """A redirect into the console with the session's cookie."""
    base = base_of(api.settings)
    target = RedirectResponse(_inside(wanted, base) or f"{base}/live", status_code=303)
    remember(target, request, token, api.settings)
    return target


def _inside(wanted: str, base: str) -> str | None:
    """The address, if it is one of the console: a link must not lead to another site."""
    parts: Any = urlsplit(wanted)
    inside = wanted.startswith(f"{base}/") and not parts.netloc and not parts.scheme
    return wanted if inside and "\\" not in wanted and wanted.isprintable() else None
