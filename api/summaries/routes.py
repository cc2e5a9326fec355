"""Rolling summaries of conversations, as a read view."""

from __future__ import annotations

from fastapi import APIRouter, Request

from api.auth.tenant import Caller
from api.http.ids import SomeEntityIds
from api.http.paging import Paged
from api.http.shared_responses import json_of
from api.http.strict_json import StrictJson
from api.summaries import responses as summary_responses
from api.summaries.responses import SummaryPageJson, SummaryStateJson
from pipeline.domain.scope import Scope

router = APIRouter(prefix="/v1/summaries", tags=["summaries"], route_class=StrictJson)


@router.get("/")
async def list_summaries(
    call: Caller, http: Request, page: Paged, ids: SomeEntityIds
) -> SummaryPageJson:
    """The versions of one scope's summary, newest first; the first one is in use.

    `pending` names the messages since then, and the reason if a newer version could not be made.
    """
    versions, count, state = await call.ledger.summaries.page(
        Scope(call.project.id, **ids), **page.window
    )
    rows = [summary_responses.version(row) for row in versions]
    return {**page.envelope(rows, count, http), "pending": json_of(SummaryStateJson, state)}
