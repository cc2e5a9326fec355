"""Adds: accept a conversation turn and return its event, in the format of each API version."""

from __future__ import annotations

from fastapi import APIRouter

from api.adds.actions import accept_turn, add_turn, count_incognito, outcome, remarks_on
from api.adds.requests import AddRequest, IdempotencyKey
from api.adds.responses import AddLine, AddResultsJson, QueuedJson, QueuedLineJson, StoredJson
from api.auth.tenant import Adding
from api.http import unknown_fields
from api.http.strict_json import StrictJson
from api.http.typed_route import example
from pipeline.domain.events import Status

router = APIRouter(tags=["memories"], route_class=StrictJson)


@router.post("/v3/memories/add/", responses=example(__package__))
async def add(
    request: AddRequest, call: Adding, idempotency_key: IdempotencyKey = None
) -> StoredJson | QueuedJson:
    """Accept a conversation turn.

    With `infer` (the default) the response is PENDING with an `event_id`, after one durable commit;
    poll `/v1/event/{event_id}/` for the receipt. With `infer=false` the messages are stored
    verbatim, and the response waits for that.

    With `dry_run` the event computes its receipt against the current memories and stores nothing.
    Its model answers are reused if the same messages are added within `MEMLANE_DRY_RUN_HOURS`.

    With an `Idempotency-Key` the request can be repeated safely: the same key and body return the
    same `event_id`; the same key with another body is refused with 409.

    With `incognito`, or in an incognito run, nothing is stored: the event is SUCCEEDED at once, and
    has neither messages nor ids. 409 in a private run that has ended.
    """
    if request.infer and not request.async_mode:
        unknown_fields.note("async_mode")
    return await add_turn(request, call, idempotency_key)


@router.post("/v1/memories/")
async def add_v1(
    request: AddRequest, call: Adding, idempotency_key: IdempotencyKey = None
) -> list[AddLine] | AddResultsJson:
    """Accept a turn from older clients; with `async_mode=false` the response waits for the results.

    The response is a bare list, as documented by Mem0; with `output_format` v1.1 an object.
    """
    incognito = await count_incognito(request, call)
    remarks = await remarks_on(request, call.api)
    event_id = incognito or await accept_turn(request, call, idempotency_key, remarks)
    results: list[AddLine] = []
    if incognito is None and request.infer and request.async_mode:
        line: QueuedLineJson = {
            "message": "Memory processing has been queued for background execution",
            "status": Status.PENDING,
            "event_id": str(event_id),
            **remarks.answer(),
        }
        results.append(line)
    elif incognito is None:
        stored = await outcome(event_id, call, verbatim=not request.infer)
        results.extend(stored["results"])
    if request.output_format != "v1.1":
        return results
    return AddResultsJson(results=results, relations=[])
