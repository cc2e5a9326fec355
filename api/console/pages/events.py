"""Events: list, one event with its waterfall and receipt, and what can be done with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from api.console.cursors import PAGE, At
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show, show_beside
from api.console.session import Changing, ConsoleSession, Viewing, grant_of
from api.console.waterfall import waterfall
from api.console.word_marks import MarkBudget, source_parts
from api.events import responses as event_responses
from api.events import routes
from api.events.query import EventsQueried
from api.events.requests import ReplayRequest, UndoRequest
from api.events.responses import UndoneJson
from api.http.ids import FormIds, uuid
from api.http.sse import HEARTBEAT, UNBUFFERED, next_change
from api.http.streams import LimitedStream
from pipeline.domain.errors import Conflict, InvalidInput
from pipeline.domain.events import EventType, FailureCode, Status
from pipeline.domain.tenants import Access
from pipeline.events.event_view import EventView

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/events")
async def list_events(
    request: Request,
    session: Viewing,
    ids: FormIds,
    cursor: At,
    query: EventsQueried,
    code: str = "",
) -> Response:
    """The project's events, newest first, with filters."""
    if code and code not in list(FailureCode):
        raise InvalidInput(f"{code[:60]!r} is no code of a failure; choose one of the list.")
    stated = query.filter(ids)
    wanted = replace(
        stated,
        created=cursor.bounds(stated.created),
        code=FailureCode(code) if code else None,
    )
    rows = await session.ledger.events.newest(
        session.project.id, wanted, limit=PAGE, offset=cursor.skip
    )
    return show(
        request,
        "events.html",
        events=[event_responses.event(row) for row in rows],
        older=cursor.after([row.created_at for row in rows]),
        statuses=[status for status in Status if status is not Status.CANCELLED],
        kinds=list(EventType),
        codes=list(FailureCode),
    )


@router.get("/events/{event_id}")
async def event(event_id: str, request: Request, session: Viewing) -> Response:
    """One event: waterfall, messages, receipt, cost."""
    return await _shown(request, session, uuid("event_id", event_id), "event.html")


@router.get("/events/{event_id}/stream")
async def stream(event_id: str, request: Request, session: Viewing) -> LimitedStream:
    """The event's page part again at each change, as Server-Sent Events, until the event ends.

    The stream ends with the session, at the next change or heartbeat after it.

    429 if the project has too many of these streams open.
    """
    identity = uuid("event_id", event_id)
    await session.ledger.events.status(session.project.id, identity)
    return LimitedStream(
        _frames(request, session, identity),
        place=session.api.console_streams.place(session.project.id),
        media_type="text/event-stream",
        headers=UNBUFFERED,
    )


@router.post("/events/{event_id}/cancel")
async def cancel(event_id: str, request: Request, session: Changing) -> Response:
    """Cancel the event."""
    await routes.cancel(uuid("event_id", event_id), session)
    return back(request, f"/events/{event_id}", done="cancelled")


@router.post("/events/{event_id}/retry")
async def retry(event_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Retry the event, with other messages or instructions; or try that out as a dry run."""
    identity = uuid("event_id", event_id)
    stored = await session.ledger.events.get(session.project.id, identity)
    edit = checked(
        ReplayRequest,
        messages=_edited(stored.messages, fields.values.get("content", ())),
        custom_instructions=fields.optional("custom_instructions"),
        stage=fields.optional("stage"),
        dry_run=fields.flag("dry_run") or None,
    )
    replayed = await routes.replay(identity, session, edit)
    done = "dry-run" if edit.dry_run else "retried"
    return back(request, f"/events/{replayed['id']}", done=done)


@router.get("/events/{event_id}/undo")
async def plan_undo(event_id: str, request: Request, session: Viewing) -> Response:
    """Show what an undo would do: a page that a browser may load again."""
    session.grant.require(Access.WRITE)
    identity = uuid("event_id", event_id)

    async def plan(*, force: bool) -> UndoneJson:
        wanted = UndoRequest(force=force, dry_run=True)
        return await routes.undo(identity, session, wanted)

    changed_since = ""
    try:
        planned = await plan(force=False)
    except Conflict as conflict:  # memories that changed since then: the rest can be undone
        planned, changed_since = await plan(force=True), str(conflict)
    return show(request, "undo.html", plan=planned, event_id=event_id, changed_since=changed_since)


@router.post("/events/{event_id}/undo")
async def undo(event_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Undo the event, or lead to what that would do if it is not confirmed."""
    confirmed = fields.flag("confirmed")
    wanted = UndoRequest(force=fields.flag("force"), dry_run=not confirmed)
    identity = uuid("event_id", event_id)
    await routes.undo(identity, session, wanted)
    if not confirmed:
        return back(request, f"/events/{event_id}/undo")
    return back(request, f"/events/{event_id}", done="undone")


async def _shown(
    request: Request, session: ConsoleSession, event_id: UUID, template: str
) -> HTMLResponse:
    """A page of one event."""
    ledger = session.ledger
    row = await ledger.events.get(session.project.id, event_id)
    now = await ledger.now()
    return await show_beside(request, template, lambda: _values(row, now))


def _values(row: EventView, now: datetime) -> dict[str, Any]:
    """Values of the template of one event."""
    facts: dict[int, list[str]] = {}
    for line in row.receipt:
        facts.setdefault(line.message_ordinal, []).append(line.text)
    budget = MarkBudget()
    texts = [
        (message, source_parts(str(message.get("content") or ""), facts.get(ordinal, ()), budget))
        for ordinal, message in enumerate(row.messages)
    ]
    return {
        "event": event_responses.event(row),
        "final": row.completed_at is not None,
        "flow": waterfall(row, now),
        "messages": texts,
        "attempts": row.attempts,
    }


def _edited(stored: Sequence[dict[str, Any]], texts: Sequence[str]) -> list[Any] | None:
    """The messages with the texts of the form; None if they are the same, or not in the form."""
    if len(texts) != len(stored):
        return None
    messages = [
        message | {"content": text} for message, text in zip(stored, texts, strict=True) if text
    ]
    before = [str(message["content"]).replace("\r\n", "\n") for message in stored]
    return None if [message["content"] for message in messages] == before else messages


async def _frames(
    request: Request, session: ConsoleSession, event_id: UUID
) -> AsyncIterator[bytes]:
    """A frame with the page part for each change, and `end` at the end of the event or the session.

    The part is the same for all sessions, so the streams of an event share its frames.
    """

    async def build() -> bytes:
        page = await _shown(request, session, event_id, "event_live.html")
        lines = bytes(page.body).replace(b"\r", b"").split(b"\n")
        return b"".join(b"data: %s\n" % line for line in lines) + b"\n"

    watching = session.api.watch.following(event_id)
    with watching as changes, session.api.event_frames.following(event_id) as shared:
        ended = False
        while not ended:
            change = await next_change(changes)
            while not changes.empty():  # only the newest one is shown
                change = changes.get_nowait()
            if await grant_of(session.token, session.api) is None:
                break
            if change is None:
                yield HEARTBEAT
                continue
            ended = change.ended
            yield await shared.frame(change, build)
    yield b"event: end\ndata: \n\n"
