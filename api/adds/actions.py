"""Steps of an add that every dialect takes: remarks, acceptance, and the result after a wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from uuid import UUID

from api.adds import responses as add_responses
from api.adds.requests import AddRequest
from api.adds.responses import QueuedJson, RemarksJson, StoredJson
from api.dependencies import Api, ApiCall
from api.http import unknown_fields
from pipeline.domain.events import Priority, Status
from pipeline.domain.messages import Message, Omission
from pipeline.ingest.add import add_messages

IGNORED = "has no effect on this add: ignored"
EXPIRED = "{day} is in the past: these memories are expired; only show_expired reads them"


async def add_turn(request: AddRequest, call: ApiCall, key: str | None) -> StoredJson | QueuedJson:
    """Accept a turn. Returns PENDING with the event's id, or what is stored if there is no model.

    `key`: the idempotency key. Incognito adds are counted and not stored.
    """
    if (event_id := await count_incognito(request, call)) is not None:
        end = await call.ledger.events.end(call.project.id, event_id)
        return add_responses.stored(event_id, end)
    remarks = await remarks_on(request, call.api)
    event_id = await accept_turn(request, call, key, remarks)
    if request.infer:
        return {"event_id": str(event_id), "status": Status.PENDING, **remarks.answer()}
    return {**await outcome(event_id, call, verbatim=True), **remarks.answer()}


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


async def remarks_on(request: AddRequest, api: Api) -> Remarks:
    """The remarks on an add: keys that it ignores, and an expiration date in the past."""
    ignored, day = tuple(unknown_fields.noted()), request.expiration_date
    if day is None or day >= (await api.stores.ledger.now()).date():
        return Remarks(ignored)
    return Remarks(ignored, EXPIRED.format(day=day))


async def accept_turn(
    request: AddRequest, call: ApiCall, key: str | None, remarks: Remarks
) -> UUID:
    """Accept the add, unless there is too much to do. Returns the id of its event."""
    scope = request.scope(call.project)
    call.api.backpressure.admit(scope, low=request.priority is Priority.LOW)
    return await add_messages(
        scope,
        remarks.on(request.turns()),
        request.options(),
        said_at=request.timestamp,
        ledger=call.ledger,
        dispatcher=call.api.dispatcher,
        key=key,
        dry_run=request.dry_run,
    )


async def count_incognito(request: AddRequest, call: ApiCall) -> UUID | None:
    """The event of an add that is not to be stored; None for any other add."""
    runs = call.ledger.private_runs
    if request.incognito or await runs.is_incognito(request.scope(call.project)):
        return await runs.count_incognito(call.project.id)
    return None


async def outcome(
    event_id: UUID, call: ApiCall, *, verbatim: bool = False, longest_s: float = inf
) -> StoredJson:
    """The result of the event; PENDING after `longest_s`, or `MEMLANE_SYNC_WAIT_S`, seconds."""
    timeout_s = min(longest_s, call.api.settings.sync_wait_s)
    if not await call.api.watch.ended(event_id, timeout_s=timeout_s, notified=verbatim):
        return {"event_id": str(event_id), "status": Status.PENDING, "results": []}
    end = await call.ledger.events.end(call.project.id, event_id)
    return add_responses.stored(event_id, end)
