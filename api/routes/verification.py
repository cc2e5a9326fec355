"""Verification: compare the rows of a project with their seals."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from api.auth.tenant import Caller
from api.dependencies import Given
from api.http.strict_json import StrictJson
from api.views import verification as verification_views

router = APIRouter(tags=["verification"], route_class=StrictJson)


@router.get("/v1/verify/")
async def verify(api: Given, project: Caller) -> dict[str, Any]:
    """Compare all events, receipts and history of a project with tamper evidence with their seals.

    `faults` names the rows that were edited, removed or inserted in the database, at most 100. It
    reads every row of the project.
    """
    check = await api.stores.ledger.seals.check(project.id)
    return verification_views.check(check)
