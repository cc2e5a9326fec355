"""Ping, health and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from api import shapes
from api.deps import Caller, Given
from pipeline import telemetry

router = APIRouter(tags=["system"])

# A well-formed address of no person: tools check its form, and clients with telemetry send it on.
NO_ONES_EMAIL = "local@memlane.invalid"


@router.get("/v1/ping/")
async def ping(project: Caller) -> dict[str, str]:
    """Whose key this is. The clients call it first and refuse to work without its ids."""
    return {
        "status": "ok",
        "org_id": str(project.organization_id),
        "project_id": str(project.id),
        "user_email": NO_ONES_EMAIL,
    }


@router.get("/v1/stats/")
async def stats(api: Given, project: Caller) -> dict[str, Any]:
    """The project's books at one instant: accepted = succeeded + failed + cancelled + pending +
    running, and `identity` is true where that holds.
    """
    return shapes.stats(await api.stores.ledger.books.accounts(project.id))


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(api: Given) -> Response:
    """The ledger answers, so adds can be accepted. What else is down is named beside it."""
    checks = await api.health()
    ready = checks["ledger"] == "ok"
    said = {"status": "ok" if ready else "unavailable", **checks}
    return JSONResponse(said, 200 if ready else 503)


@router.get("/metrics")
async def metrics(api: Given) -> Response:
    await api.measure()
    body, content_type = telemetry.exposition()
    return Response(body, media_type=content_type)
