"""Ping, health and metrics."""

from __future__ import annotations

import hmac
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from api.auth.tenant import Caller
from api.dependencies import Given
from api.errors import Unauthorized
from api.events import usage as usage_views
from api.events.usage import StatsJson
from api.http.typed_route import TypedRoute
from api.system.responses import HealthJson, PingJson, ReadyJson
from pipeline import __version__
from pipeline.domain.errors import Forbidden
from pipeline.webhooks.addresses import is_loopback

router = APIRouter(tags=["system"], route_class=TypedRoute)

# Headers that reverse proxies add to requests.
PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# A valid address that belongs to no person: tools validate it, and clients with telemetry send it.
NO_ONES_EMAIL = "local@memlane.invalid"


@router.get("/v1/ping/")
async def ping(call: Caller) -> PingJson:
    """The organization and project of the key. Clients call this first and require both ids."""
    return {
        "status": "ok",
        "org_id": str(call.project.organization_id),
        "project_id": str(call.project.id),
        "user_email": NO_ONES_EMAIL,
    }


@router.get("/v1/stats/")
async def stats(
    call: Caller,
    user_id: str | None = None,
    start_date: date | None = None,
    end_date: date | None = None,
) -> StatsJson:
    """The project's numbers of events at one instant: accepted = succeeded + failed + cancelled +
    pending + running; `identity` is true if this holds.

    `usage`: calls, tokens and cost of models, in total and by model and day (UTC); with `user_id`
    of one user, with `start_date` and `end_date` between two days.
    """
    await call.api.figures.write_down()
    ledger = call.ledger
    spent = await ledger.costs.spending(
        call.project.id, user_id=user_id, start=start_date, end=end_date
    )
    owners = await ledger.owners.totals(call.project.id, registered=False)
    return usage_views.stats(await ledger.balance.totals(call.project.id), owners, spent)


# Some load balancers send HEAD.
@router.head("/healthz", include_in_schema=False)
@router.get("/livez")
@router.get("/healthz")
async def healthz() -> HealthJson:
    """200 if the process answers, without a look at the database; with its version."""
    return {"status": "ok", "version": __version__}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", response_model=ReadyJson)
async def readyz(api: Given) -> Response:
    """200 if the ledger answers, so that adds can be accepted. The states of the vector store and
    the model are named too.
    """
    checks = await api.health()
    ready = checks["ledger"] == "ok"
    body = {"status": "ok" if ready else "unavailable", **checks}
    return JSONResponse(body, 200 if ready else 503)


async def scraper(
    request: Request,
    api: Given,
    authorization: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> None:
    """Authorize a scraper, because metrics cover all projects.

    Errors: Unauthorized without the configured token; Forbidden if no token is configured and the
    request may be from another host.
    """
    token = api.settings.metrics_token
    if token is None and not (is_loopback(api.settings.host) and _is_direct(request)):
        raise Forbidden("Set MEMLANE_METRICS_TOKEN and send it as `Authorization: Bearer <token>`.")
    given = (authorization or "").partition(" ")[2].strip().encode()
    if token and not hmac.compare_digest(given, token.get_secret_value().encode()):
        raise Unauthorized("Send MEMLANE_METRICS_TOKEN as `Authorization: Bearer <token>`.")


def _is_direct(request: Request) -> bool:
    """Tell if no proxy has passed the request on.

    A public name in `Host` is that of a proxy, or of a site that has its name lead to this machine
    (DNS rebinding).
    """
    host = request.url.hostname or ""
    passed_on = any(name in request.headers for name in PROXY_HEADERS)
    return not passed_on and (is_loopback(host) or "." not in host)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[Depends(scraper)])
async def metrics(api: Given) -> Response:
    """Metrics in the Prometheus text format, at most five seconds old."""
    body, content_type = await api.figures.exposition()
    return Response(body, media_type=content_type)
