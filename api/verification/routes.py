"""Verification: compare the rows of a project with their seals."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth.tenant import Caller
from api.http.shared_responses import json_of
from api.http.strict_json import StrictJson
from api.verification import responses as verification_responses
from api.verification.responses import HeadJson, HeadsJson, VerifiedPageJson
from pipeline.domain.tenants import Access

router = APIRouter(tags=["verification"], route_class=StrictJson)


@router.get("/v1/verify/")
async def verify(
    call: Caller,
    cursor: Annotated[
        str | None, Query(max_length=200, description="`next` of the page before.")
    ] = None,
) -> VerifiedPageJson:
    """Compare a page of the events, receipts and history of a project with tamper evidence with
    their seals. Needs an admin key.

    `faults` names the rows that were edited, removed or inserted in the database, at most 100 of a
    page. The project is verified once `next` is null and no page had a fault. 409 while another
    page of the project is being verified. `enabled` false: the project has no tamper evidence.
    """
    call.grant.require(Access.ADMIN)
    page = await call.ledger.seals.verify(call.project.id, cursor)
    return verification_responses.page(page)


@router.get("/v1/verify/heads/")
async def heads(
    call: Caller,
    after: Annotated[int, Query(ge=0, le=2**62, description="`number` of the last one.")] = 0,
) -> HeadsJson:
    """The recorded heads of a project with tamper evidence, oldest first, at most 1,000. Needs an
    admin key.

    The log lines `seal_head` and the webhook `seal_head` carry the same numbers and roots: keep
    them in another place, and compare.
    """
    call.grant.require(Access.ADMIN)
    rows = await call.ledger.seals.checkpoints(call.project.id, after=after)
    return {
        "project_id": str(call.project.id),
        "results": [json_of(HeadJson, row) for row in rows],
    }
