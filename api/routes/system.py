"""Ping, health and metrics."""

from __future__ import annotations

import hmac
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Response
from fastapi.responses import JSONResponse

from api.dependencies import Caller, Given
from api.errors import Unauthorized
from api.views import usage as usage_views
from pipeline import __version__, telemetry
from pipeline.domain.errors import Forbidden
from pipeline.webhooks.addresses import is_loopback

router = APIRouter(tags=["system"])

# A well-formed address of no person: tools check its form, and clients with telemetry send it on.
NO_ONES_EMAIL = "local@memlane.invalid"


@router.get("/v1/ping/")
async def ping(project: Caller) -> dict[str, str]:
    """The organization and project of the key. Clients call it first, and require its ids."""
    return {
        "status": "ok",
        "org_id": str(project.organization_id),
        "project_id": str(project.id),
        "user_email": NO_ONES_EMAIL,
    }


@router.get("/v1/stats/")
async def stats(
    api: Given,
    project: Caller,
    user_id: str | None = None,
    start_date: date | None = None,
    end_date: date | None = None,
) -> dict[str, Any]:
    """The project's books at one instant: accepted = succeeded + failed + cancelled + pending +
    running, and `identity` is true where that holds.

    `usage` is what models were paid, in all and by model and day (UTC): of one user with `user_id`,
    between days with `start_date` and `end_date`.
    """
    await api.figures.write_down()
    ledger = api.stores.ledger
    spent = await ledger.costs.spending(project.id, user_id=user_id, start=start_date, end=end_date)
    owners = await ledger.books.owners(project.id)
    return usage_views.stats(await ledger.books.accounts(project.id), owners, spent)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers; its version."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz")
async def readyz(api: Given) -> Response:
    """The ledger answers, so adds can be accepted. What else is down is named beside it."""
    checks = await api.health()
    ready = checks["ledger"] == "ok"
    body = {"status": "ok" if ready else "unavailable", **checks}
    return JSONResponse(body, 200 if ready else 503)


async def scraper(
    api: Given, authorization: Annotated[str | None, Header(include_in_schema=False)] = None
) -> None:
    """Authorize a scraper: metrics are of all projects.

    Errors: Unauthorized without the configured token; Forbidden if none is configured and other
    hosts can connect.
    """
    token = api.settings.metrics_token
    if token is None and not is_loopback(api.settings.host):
        raise Forbidden("Set MEMLANE_METRICS_TOKEN and send it as `Authorization: Bearer <token>`.")
    given = (authorization or "").partition(" ")[2].strip().encode()
    if token and not hmac.compare_digest(given, token.get_secret_value().encode()):
        raise Unauthorized("Send MEMLANE_METRICS_TOKEN as `Authorization: Bearer <token>`.")


@router.get("/metrics", dependencies=[Depends(scraper)])
async def metrics(api: Given) -> Response:
    """Prometheus' text form. The figures of the ledger are at most five seconds old."""
    await api.figures.refresh()
    body, content_type = telemetry.exposition()
    return Response(body, media_type=content_type)
