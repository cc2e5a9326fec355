"""Events: read, follow, cancel, replay and undo them."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request

from api.auth.tenant import Caller, Validity
from api.auth.users import is_of
from api.dependencies import ApiCall
from api.events import responses as event_responses
from api.events.query import EventsQueried
from api.events.requests import ReplayManyRequest, ReplayRequest, UndoRequest
from api.events.responses import EventJson, EventsPageJson, ReplayedJson, UndoneJson
from api.http.ids import EntityIds, uuid
from api.http.large_answers import answer
from api.http.paging import Paged, scoped
from api.http.sse import UNBUFFERED, EventStream, live
from api.http.strict_json import StrictJson
from api.http.typed_route import example
from api.lists.requests import LONGEST_WAIT_S
from api.profiles import responses as profile_responses
from pipeline.domain.errors import NotFound
from pipeline.domain.events import EventType, Status
from pipeline.domain.filters import ENTITY_IDS, EventFilter, period
from pipeline.domain.graph.values import GraphStatus
from pipeline.events import service as use_cases
from pipeline.events.dead_letters import dead_letters
from pipeline.events.event_view import EventView
from pipeline.events.store import NO_SUCH_EVENT

router = APIRouter(tags=["events"], route_class=StrictJson)


async def _event_id(event_id: str, call: Caller, ids: EntityIds) -> UUID:
    """The event that the path names. NotFound if it does not have all ids of the query string."""
    identity = uuid("event_id", event_id)
    if ids:
        view = await call.ledger.events.get(call.project.id, identity)
        if not is_of(view.scope, tuple(ids.items())):
            raise NotFound(NO_SUCH_EVENT)
    return identity


EventId = Annotated[UUID, Depends(_event_id)]

# Receipt lines and messages of an event that take as long as rows of a list.
ROWS_OF_AN_EVENT = 10


@router.get("/v1/event/{event_id}/", responses=example(__package__))
@router.get("/v1/events/{event_id}/", include_in_schema=False)
async def get(
    event_id: EventId, call: Caller, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0.0
) -> EventJson:
    """An event with its receipt. `wait`: seconds to wait for its end before the response.

    404 if the event does not have all given ids, here and on the other routes of one event.
    """
    view = await call.ledger.events.get(call.project.id, event_id)
    if wait and view.completed_at is None and await call.api.watch.ended(event_id, timeout_s=wait):
        view = await call.ledger.events.get(call.project.id, event_id)
    return await receipt_of(view, call)


async def receipt_of(view: EventView, call: ApiCall) -> EventJson:
    """An event, with the fields of the user's profile that it or its memories fill."""
    ledger, shown = call.ledger, event_responses.event(view)
    if view.event_type == EventType.PROFILE and view.status is Status.SUCCEEDED:
        answer = await ledger.answers.of(call.project.id, view.id)
        shown["profile_fields"] = profile_responses.receipt(answer)
        return shown
    memory_ids = [line.memory_id for line in view.receipt if line.memory_id]
    if memory_ids and view.scope.user_id is not None:
        filled = await ledger.profiles.filled_by(call.project.id, memory_ids)
        event_responses.add_filled(shown["results"], filled)
    return shown


@router.get("/v1/event/{event_id}/stream/", response_class=EventStream)
async def stream(event_id: EventId, call: Caller, valid: Validity) -> EventStream:
    """Follow an event as Server-Sent Events: `stage` at each change of status, stage or wait, then
    `end` with the whole event. A comment every 15 s prevents proxies from closing the connection.
    The stream ends early if the key is revoked or expires. 429 if the project follows 1,000 events
    in this process already.
    """
    ledger = call.ledger.events
    await ledger.status(call.project.id, event_id)  # 404 must be sent before the stream starts
    frames = live(call.project.id, event_id, events=ledger, watch=call.api.watch, allowed=valid)
    place = call.api.event_streams.place(call.project.id)
    return EventStream(frames, place=place, headers=UNBUFFERED)


@router.get("/v1/events/")
async def list_events(
    call: Caller, http: Request, query: EventsQueried, page: Paged, ids: EntityIds
) -> EventsPageJson:
    """The project's events, newest first. `status` and `event_type` accept several words, separated
    by commas. `bounded_parts`: `count` if there are at least that many, `results` if events may be
    missing, because the owner has more than 20,000 scopes.
    """
    wanted = query.filter(ids)
    listed = await call.ledger.events.page(call.project.id, wanted, **page.window)
    build = partial(scoped, page, listed, event_responses.event, http)
    return await answer(build, rows=ROWS_OF_AN_EVENT * len(listed.rows))


@router.post("/v1/event/{event_id}/cancel/")
async def cancel(event_id: EventId, call: Caller) -> EventJson:
    """Cancel an event before it has an effect; no further model call is made.

    409 if its memories are stored or it has ended; a second cancel changes nothing. The response is
    the event: FAILED with code CANCELLED.
    """
    ledger = call.ledger
    await use_cases.cancel(
        call.project.id, event_id, cancellation=ledger.cancellation, dispatcher=call.api.dispatcher
    )
    return event_responses.event(await ledger.events.get(call.project.id, event_id))


@router.post("/v1/event/{event_id}/replay/")
async def replay(
    event_id: EventId, call: Caller, request: ReplayRequest | None = None
) -> EventJson:
    """Retry a FAILED event at the tail of its lane. The body may replace its messages or
    instructions. 409 for an event that has not failed.

    `{"stage": "relate"}` repeats only the graph stage of an event that SUCCEEDED with
    `graph_status` FAILED or PARTIAL, together with the other events of its batch.

    With `dry_run` the response is a new event of type DRY_RUN, which computes the receipt.
    """
    edit, ledger = request or ReplayRequest(), call.ledger
    if edit.dry_run:
        event_id = await use_cases.rehearse(
            call.project.id,
            event_id,
            messages=edit.turns(),
            instructions=edit.instructions(),
            dead_letters=ledger.dead_letters,
            ledger=ledger,
            dispatcher=call.api.dispatcher,
        )
        return event_responses.event(await ledger.events.get(call.project.id, event_id))
    whole = partial(use_cases.replay, messages=edit.turns(), instructions=edit.instructions())
    again = use_cases.replay_graph if edit.stage else whole
    store = ledger.dead_letters
    await again(call.project.id, event_id, dead_letters=store, dispatcher=call.api.dispatcher)
    return event_responses.event(await ledger.events.get(call.project.id, event_id))


@router.post("/v1/events/replay/")
async def replay_many(request: ReplayManyRequest, call: Caller) -> ReplayedJson:
    """Retry the FAILED events that match, oldest first, up to 1,000 for each call.

    Cancelled events are included only if `code` is CANCELLED. With `stage` "relate", the graph
    stage of events that SUCCEEDED is repeated if their `graph_status` is FAILED, or PARTIAL if the
    request says so; those replayed before come last.
    """
    given = request.model_dump()
    wanted = EventFilter(
        {name: given[name] for name in ENTITY_IDS if given[name]},
        statuses=() if request.stage else dead_letters(request.code).statuses,
        created=period(request.start_date, request.end_date),
        code=request.code,
        graph_status=request.graph_status or GraphStatus.FAILED if request.stage else None,
    )
    store = call.ledger.dead_letters
    ids = await use_cases.replay_all(
        call.project.id, wanted, dead_letters=store, dispatcher=call.api.dispatcher
    )
    return {"replayed": len(ids), "event_ids": [str(event_id) for event_id in ids]}


@router.post("/v1/event/{event_id}/undo/")
async def undo(event_id: EventId, call: Caller, request: UndoRequest | None = None) -> UndoneJson:
    """Undo the changes of an event: added memories are removed, changed and deleted ones are
    restored, and so are relations.

    409 names every memory that a later event or a person has changed since then; with `force` these
    are skipped and listed. A second undo is refused. With `dry_run` the response is the same,
    without `undone_at`, and nothing changes.
    """
    stores = call.api.stores
    undone = await use_cases.undo(
        call.project.id,
        event_id,
        force=request is not None and request.force,
        dry_run=request is not None and request.dry_run,
        store=stores.ledger.undo,
        embedder=stores.embedder,
        index=stores.index,
        key_id=call.grant.key_id,
    )
    return event_responses.undone(event_id, undone)
