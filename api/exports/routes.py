"""Exports in a given JSON schema, and summaries, of all memories that match."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from fastapi import APIRouter, Response

from api.auth.tenant import Caller, Reader
from api.dependencies import ApiCall
from api.exports.requests import ExportReadRequest, ExportRequest, QuestionRequest, SummaryRequest
from api.exports.responses import ExportedJson, NotReadyJson, SummaryJson, not_ready
from api.http.strict_json import StrictJson
from api.http.typed_route import Responses
from pipeline.domain.errors import Conflict
from pipeline.domain.events import AddOptions, Status
from pipeline.ingest.add import add_messages

router = APIRouter(tags=["exports"], route_class=StrictJson)

LATER: Responses = {202: {"description": "Not ready yet.", "model": NotReadyJson}}


@router.post("/v1/exports/", status_code=201)
async def create(request: ExportRequest, call: Caller) -> ExportedJson:
    """Fill an object of a given JSON schema from the memories that match the filters. The returned
    id is that of an event, which can be polled.
    """
    event_id = await _ask(request, request.options(), call)
    return {"message": "Export accepted; ask for it by its id.", "id": str(event_id)}


@router.post("/v1/exports/get/", response_model=dict[str, Any], responses=LATER)
async def get(
    request: ExportReadRequest, call: Reader, response: Response
) -> dict[str, Any] | NotReadyJson:
    """The filled object, by `memory_export_id`, or the newest one of the same filters. The response
    waits for it; 202 if it is not ready in time.
    """
    event_id = await call.ledger.answers.export(
        call.project.id,
        event_id=request.memory_export_id,
        filters=request.condition(),
        snapshot=request.snapshot(),
    )
    return await _answer(event_id, call, response)


@router.post("/v1/summary/", response_model=SummaryJson, responses=LATER)
async def summary(
    request: SummaryRequest, call: Caller, response: Response
) -> SummaryJson | NotReadyJson:
    """A short summary of the memories that match the filters. 202 if it takes too long; then the
    event has the summary.
    """
    event_id = await _ask(request, request.options(), call)
    return cast("SummaryJson | NotReadyJson", await _answer(event_id, call, response))


async def _ask(request: QuestionRequest, options: AddOptions, call: ApiCall) -> UUID:
    scope = request.scope(call.project)
    call.api.backpressure.admit(scope)
    return await add_messages(
        scope, (), options, said_at=None, ledger=call.ledger, dispatcher=call.api.dispatcher
    )


async def _answer(
    event_id: UUID, call: ApiCall, response: Response
) -> dict[str, Any] | NotReadyJson:
    """The object of an ended event; 202 if it is not ready. Errors: Conflict if it failed."""
    await call.api.watch.ended(event_id, timeout_s=call.api.settings.sync_wait_s)
    event = await call.ledger.events.get(call.project.id, event_id)
    if event.status in (Status.FAILED, Status.CANCELLED):
        text = f"Nothing was made, with {event.failure_code}: {event.failure_detail}"
        raise Conflict(text, code=event.failure_code)
    if event.status is not Status.SUCCEEDED:
        response.status_code = 202
        return not_ready(event_id)
    return await call.ledger.answers.of(call.project.id, event_id)
