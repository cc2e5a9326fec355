"""Adds: accept a conversation turn and return its event, in the format of each API version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header

from api.adds import views as add_views
from api.adds.schemas import AddRequest
from api.adds.views import (
    AddLine,
    AddResultsJson,
    QueuedJson,
    QueuedLineJson,
    RemarksJson,
    StoredJson,
)
from api.auth.tenant import Adding
from api.dependencies import Api, Given
from api.http import unknown_fields
from api.http.strict_json import StrictJson
from api.http.typed_route import example
from pipeline.domain.events import Priority, Status
from pipeline.domain.messages import Message, Omission
from pipeline.ingest import accept
from pipeline.tenants.projects import Project

router = APIRouter(tags=["memories"], route_class=StrictJson)

IGNORED = "not a key of an add: ignored"
EXPIRED = "{day} is in the past: these memories are expired; only show_expired reads them"

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Identifies this add: a second request with the same key adds nothing.",
    ),
]


@router.post("/v3/memories/add/", responses=example(__package__))
async def add(
    request: AddRequest, api: Given, project: Adding, idempotency_key: IdempotencyKey = None
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
    if (event_id := await _incognito(request, api, project)) is not None:
        end = await api.stores.ledger.events.end(project.id, event_id)
        return add_views.stored(event_id, end)
    remarks = await _remarks(request, api)
    event_id = await _accept(request, api, project, idempotency_key, remarks)
    if request.infer:
        return {"event_id": str(event_id), "status": Status.PENDING, **remarks.answer()}
    return {**await outcome(event_id, api, project, verbatim=True), **remarks.answer()}


@router.post("/v1/memories/")
async def add_v1(
    request: AddRequest, api: Given, project: Adding, idempotency_key: IdempotencyKey = None
) -> list[AddLine] | AddResultsJson:
    """Accept a turn from older clients; with `async_mode=false` the response waits for the results.

    The response is a bare list, as documented by Mem0; with `output_format` v1.1 an object.
    """
    incognito = await _incognito(request, api, project)
    remarks = await _remarks(request, api)
    event_id = incognito or await _accept(request, api, project, idempotency_key, remarks)
    results: list[AddLine] = []
    if incognito is not None:
        pass
    elif request.infer and request.async_mode:
        queued = "Memory processing has been queued for background execution"
        line: QueuedLineJson = {
            "message": queued,
            "status": Status.PENDING,
            "event_id": str(event_id),
            **remarks.answer(),
        }
        results.append(line)
    else:
        stored = await outcome(event_id, api, project, verbatim=not request.infer)
        results.extend(stored["results"])
    if request.output_format != "v1.1":
        return results
    response: AddResultsJson = {"results": results, "relations": []}
    return response


@dataclass(frozen=True, slots=True)
class Remarks:
    """Names that an add ignores, and a warning about it; in its answer and receipt."""

    ignored: tuple[str, ...] = ()
    warning: str | None = None

    def answer(self) -> RemarksJson:
        """The fields of the add's answer; none without a remark."""
        answer: RemarksJson = {}
        if self.ignored:
            answer["ignored"] = list(self.ignored)
        if self.warning:
            answer["warning"] = self.warning
        return answer

    def on(self, messages: list[Message]) -> list[Message]:
        """The messages, with the remarks among the omissions of the first one."""
        omissions = [Omission(None, name, IGNORED) for name in self.ignored]
        if self.warning:
            omissions.append(Omission(None, "expiration_date", self.warning))
        if not omissions:
            return messages
        first, *others = messages
        return [replace(first, omitted=(*first.omitted, *omissions)), *others]


async def _remarks(request: AddRequest, api: Api) -> Remarks:
    """The remarks on an add: keys that it ignores, and an expiration date in the past."""
    ignored, day = tuple(unknown_fields.noted()), request.expiration_date
    if day is None or day >= (await api.stores.ledger.now()).date():
        return Remarks(ignored)
    return Remarks(ignored, EXPIRED.format(day=day))


async def _accept(
    request: AddRequest, api: Api, project: Project, key: str | None, remarks: Remarks
) -> UUID:
    """Accept the add, unless there is too much to do. Returns the id of its event."""
    scope = request.scope(project)
    api.backpressure.admit(scope, low=request.priority is Priority.LOW)
    return await accept.accept(
        scope,
        remarks.on(request.turns()),
        request.options(),
        said_at=request.timestamp,
        ledger=api.stores.ledger,
        dispatcher=api.dispatcher,
        key=key,
        dry_run=request.dry_run,
    )


async def _incognito(request: AddRequest, api: Api, project: Project) -> UUID | None:
    """The event of an add that is not to be stored; None for any other add."""
    runs = api.stores.ledger.private_runs
    if request.incognito or await runs.is_incognito(request.scope(project)):
        return await runs.count_incognito(project.id)
    return None


async def outcome(event_id: UUID, api: Api, project: Project, *, verbatim: bool) -> StoredJson:
    """The result of the event, or PENDING after `MEMLANE_SYNC_WAIT_S` seconds."""
    if not await api.watch.ended(event_id, timeout_s=api.settings.sync_wait_s, notified=verbatim):
        return {"event_id": str(event_id), "status": Status.PENDING, "results": []}
    end = await api.stores.ledger.events.end(project.id, event_id)
    return add_views.stored(event_id, end)
