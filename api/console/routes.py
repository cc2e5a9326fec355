"""One-time links to the console."""

from __future__ import annotations

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from api.auth.tenant import Reader
from api.http.strict_json import StrictJson
from pipeline.tenants.console_sessions import LINK_FOR


class ConsoleLinkJson(TypedDict):
    """A link that signs in once, and the seconds until it ends."""

    url: str
    expires_in_s: int


router = APIRouter(tags=["system"], route_class=StrictJson)


@router.post("/v1/console/links/")
async def make_link(http: Request, call: Reader) -> ConsoleLinkJson:
    """Create a link that signs in to the console with this key, once, within ten minutes.

    The session has the key's rights, and ends with it.
    """
    token = await call.ledger.console_sessions.link(call.grant)
    public = call.api.settings.public_url
    origin = public.rstrip("/") if public else str(http.base_url).rstrip("/")
    return {
        "url": f"{origin}/console/enter/{token.key}",
        "expires_in_s": int(LINK_FOR.total_seconds()),
    }
