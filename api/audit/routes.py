"""The audit log: who changed what, and when."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from api.audit import responses as audit_responses
from api.audit.responses import AuditPageJson
from api.auth.tenant import Caller
from api.http.strict_json import StrictJson
from pipeline.domain.tenants import Access

router = APIRouter(tags=["tenants"], route_class=StrictJson)

LARGEST = 200


@router.get("/v1/audit/")
async def audit_log(
    call: Caller,
    before: Annotated[int | None, Query(ge=0, le=2**62, description="`next` of a page.")] = None,
    key_id: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=LARGEST)] = 100,
) -> AuditPageJson:
    """Requests that changed something, or tried to, newest first; adds are left out. Needs an
    admin key.

    `status`: of the response; null if the process ended before it. `target`: the row that the
    request was about. Entries have no text and no id of a user.
    """
    call.grant.require(Access.ADMIN)
    rows = await call.ledger.audit.page(call.project.id, before=before, key_id=key_id, limit=limit)
    return {
        "next": rows[-1].id if len(rows) == limit else None,
        "results": [audit_responses.entry(row) for row in rows],
    }
