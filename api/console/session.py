"""The session of a request to the console: the API key it stands for, and its CSRF token.

Viewing         requires a key with read scope
Changing        requires write scope, and the session's CSRF token in the form
Administering   the same, with admin scope
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.responses import Response

from api.audit import recording as audit
from api.console.forms import Form, know_visitor
from api.dependencies import Api, ApiCall, Given
from pipeline.domain.errors import Forbidden, MemlaneError
from pipeline.domain.tenants import Access
from pipeline.ledger.fair_pool import take_turns_as
from pipeline.settings import Settings
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.secret import Secret

COOKIE = "memlane_console"
CSRF_FIELD = "csrf"
# Attribute of a request's state: its form has the CSRF token of its session.
GENUINE = "genuine_form"
FORGED = (
    "This form does not belong to your session, so nothing was changed. Reload the page and send"
    " it again."
)


class SignInNeeded(MemlaneError):
    """The request has no session, or one that has ended."""


class StaleForm(Forbidden):
    """The form has the CSRF token of another session, such as one that has ended."""


@dataclass(frozen=True, slots=True)
class ConsoleSession(ApiCall):
    """A session: a call with the key that it stands for."""

    token: str

    @classmethod
    def of(cls, api: Api, grant: Grant, token: str) -> ConsoleSession:
        """The session with a token, for the project of its key."""
        return cls(api, grant, grant.project, token)

    @property
    def csrf(self) -> str:
        """Token that forms carry: no other site can compute it."""
        return hmac.new(self.token.encode(), b"csrf", hashlib.sha256).hexdigest()

    def may(self, access: str) -> bool:
        """Tell if the key has this access: read, write or admin."""
        return self.grant.access.allows(Access(access))


def base_of(settings: Settings) -> str:
    """Path of the console, below that of the public URL."""
    return urlsplit(settings.public_url or "").path.rstrip("/") + "/console"


def lifetime(settings: Settings) -> timedelta:
    """Time after which a session ends."""
    return timedelta(hours=settings.console_hours)


def remember(response: Response, request: Request, token: Secret, settings: Settings) -> None:
    """Set the cookie of a session."""
    public = settings.public_url or ""
    response.set_cookie(
        COOKIE,
        token.key,
        max_age=int(lifetime(settings).total_seconds()),
        path=base_of(settings),
        secure=request.url.scheme == "https" or public.startswith("https:"),
        httponly=True,
        samesite="strict",
    )


def is_own(request: Request, settings: Settings) -> bool | None:
    """Tell if a page of this server has sent the form; None if the browser does not say."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return None if site == "none" else site == "same-origin"
    hosts = {request.headers.get("host"), urlsplit(settings.public_url or "").netloc}
    return None if origin is None else urlsplit(origin).netloc in hosts - {"", None}


def require_same_origin(request: Request, settings: Settings) -> None:
    """Refuse a form that another site has sent. Errors: Forbidden."""
    if is_own(request, settings) is False:
        raise Forbidden(FORGED)


async def session_of(request: Request, api: Given) -> ConsoleSession:
    """The session of the request. Errors: SignInNeeded; Overloaded above the key's rate limit."""
    token = request.cookies.get(COOKIE, "")
    grant = await grant_of(token, api)
    if grant is None:
        raise SignInNeeded("Sign in first.")
    take_turns_as(grant.project.id)
    # An error's page has the menu, and the forms of this session.
    request.state.session = session = ConsoleSession.of(api, grant, token)
    if allowance := api.keys.allowance(grant):
        allowance.require()
    know_visitor(request)
    return session


async def grant_of(token: str, api: Api) -> Grant | None:
    """The grant of a session's key; None if the session or its key has ended."""
    digest = await api.stores.ledger.console_sessions.key(Secret(token)) if token else None
    return None if digest is None else await api.keys.grant_of(digest)


Known = Annotated[ConsoleSession, Depends(session_of)]


async def viewing(session: Known) -> ConsoleSession:
    """The session, if its key has read scope."""
    session.grant.require(Access.READ)
    return session


async def genuine(request: Request, api: Given, session: Known, fields: Form) -> ConsoleSession:
    """The session, if the form carries its CSRF token. Errors: Forbidden."""
    require_same_origin(request, api.settings)
    if not hmac.compare_digest(fields.text(CSRF_FIELD).encode(), session.csrf.encode()):
        raise StaleForm(FORGED)
    setattr(request.state, GENUINE, True)
    await audit.begin(request, api.stores.ledger.audit, session.grant, session.project.id)
    return session


Genuine = Annotated[ConsoleSession, Depends(genuine)]


async def changing(session: Genuine) -> ConsoleSession:
    """The session, if its key has write scope and the form its CSRF token."""
    session.grant.require(Access.WRITE)
    return session


async def administering(session: Genuine) -> ConsoleSession:
    """The session, if its key has admin scope and the form its CSRF token."""
    session.grant.require(Access.ADMIN)
    return session


Viewing = Annotated[ConsoleSession, Depends(viewing)]
Changing = Annotated[ConsoleSession, Depends(changing)]
Administering = Annotated[ConsoleSession, Depends(administering)]
