"""Memories: list with filters, one memory with its history at any time, and changes by people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from fastapi import APIRouter, Request, Response

from api.console.cursors import At, PageCursor
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show, show_beside
from api.console.session import Changing, ConsoleSession, Viewing
from api.http.ids import FormIds, uuid
from api.lists.requests import ListRequest
from api.lists.routes import read_page
from api.memories import responses as memory_responses
from api.memories import routes
from api.memories.requests import ALL_IDS, FeedbackRequest, UpdateRequest
from api.versions import routes as version_routes
from api.versions.requests import RestoreRequest
from api.versions.snapshots import SnapshotQuery
from pipeline.domain.errors import ChangedSince, NotFound
from pipeline.domain.memories import Memory
from pipeline.memories.history import HistoryEntry

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)
# Characters of the texts in one page of a memory's history.
LONGEST_PAGE = 100_000
# Fields of the list's filter besides ids and dates.
OPTIONS = ("keywords", "categories", "as_of", "valid_at", "show_expired", "show_superseded")


@router.get("/memories")
async def list_memories(request: Request, session: Viewing, ids: FormIds, cursor: At) -> Response:
    """The memories that match the filters, newest first."""
    rows = await _page(request, session, ids, cursor)
    categories = await session.ledger.memories.categories(session.project.id)
    return await show_beside(
        request,
        "memories.html",
        lambda: {
            "memories": [memory_responses.memory(row) for row in rows],
            "older": cursor.after([row.created_at for row in rows if row.created_at]),
            "categories": categories,
        },
    )


@router.get("/memories/{memory_id}")
async def memory(
    memory_id: str,
    request: Request,
    session: Viewing,
    snapshot: SnapshotQuery,
    until: int | None = None,
) -> Response:
    """One memory, now or at a time on either clock, with its history and sources.

    `until`: the newest version of the history's page.
    """
    ledger, identity = session.ledger, uuid("memory_id", memory_id)
    entries = await ledger.histories.of(session.project.id, identity)
    if not entries:
        raise NotFound("Memory not found!")
    try:
        if snapshot.is_current:
            row = await ledger.memories.get(session.project.id, identity)
        else:
            row = await ledger.versions.get(session.project.id, identity, snapshot)
    except NotFound:  # deleted, or not yet known at that time: the history still shows it
        row = None
    reads = await ledger.reads.of(session.project.id, identity)
    states = _fitting(entries, until)
    return await show_beside(
        request,
        "memory.html",
        lambda: {
            "memory": None if row is None else memory_responses.memory(row),
            "memory_id": memory_id,
            # The time at which the version that is shown was stored.
            "stored_at": next(
                (e.created_at for e in entries if row is not None and e.version == row.version),
                None,
            ),
            "states": entries,
            "newest": entries[-1].version,
            "history": [memory_responses.history(entry) for entry in states],
            "older": _older(entries, states),
            "current": snapshot.is_current,
            "reads": reads,
            "sampled_days": session.api.settings.search_sample_days,
        },
    )


@router.post("/memories/{memory_id}/edit")
async def edit(memory_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Change the text, unless the memory has changed since the form was shown."""
    text, version = fields.text("text"), fields.optional("version")
    change = checked(UpdateRequest, text=text, version=version)
    try:
        await routes.update(memory_id, change, session)
    except ChangedSince:
        row = await session.ledger.memories.get(session.project.id, uuid("memory_id", memory_id))
        return show(request, "changed.html", status=409, memory=row, text=text)
    return back(request, f"/memories/{memory_id}", done="edited")


@router.post("/memories/{memory_id}/pin")
async def pin(memory_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Pin or unpin: no model changes a pinned memory."""
    pinned = fields.flag("pinned")
    change = checked(UpdateRequest, pinned=pinned)
    await routes.update(memory_id, change, session)
    return back(request, f"/memories/{memory_id}", done="pinned" if pinned else "unpinned")


@router.post("/memories/{memory_id}/restore")
async def restore(memory_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Give the memory the state of one of its versions."""
    wanted = checked(RestoreRequest, version=fields.text("version"))
    await version_routes.restore(memory_id, wanted, session)
    return back(request, f"/memories/{memory_id}", done="restored")


@router.post("/memories/{memory_id}/delete")
async def delete(memory_id: str, request: Request, session: Changing) -> Response:
    """Delete the memory; its history stays, and it can be restored."""
    await routes.delete(memory_id, session)
    return back(request, f"/memories/{memory_id}", done="deleted")


@router.post("/memories/{memory_id}/feedback")
async def feedback(memory_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Rate the memory."""
    rating = checked(
        FeedbackRequest,
        memory_id=uuid("memory_id", memory_id),
        feedback=fields.optional("feedback"),
        feedback_reason=fields.optional("reason"),
    )
    await routes.feedback(rating, session)
    return back(request, f"/memories/{memory_id}", done="rated")


def _fitting(entries: Sequence[HistoryEntry], until: int | None) -> Sequence[HistoryEntry]:
    """The newest states up to a version whose texts fit a page, newest first; at least one."""
    newest_first = [entry for entry in reversed(entries) if until is None or entry.version <= until]
    sizes = accumulate(_size(entry) for entry in newest_first)
    return newest_first[: max(1, sum(1 for size in sizes if size <= LONGEST_PAGE))]


def _size(entry: HistoryEntry) -> int:
    """Characters of a state on the page."""
    message = str((entry.message or {}).get("content") or "")
    return len(entry.old_text or "") + len(entry.new_text or "") + len(message)


def _older(
    entries: Sequence[HistoryEntry], states: Sequence[HistoryEntry]
) -> dict[str, str] | None:
    """Query of the next page of the history."""
    if not states or states[-1].version == entries[0].version:
        return None
    return {"until": str(states[-1].version - 1)}


async def _page(
    request: Request, session: ConsoleSession, ids: dict[str, str], cursor: PageCursor
) -> Sequence[Memory]:
    """A page of memories that match the query string. Without ids: those of all owners."""
    query = request.query_params
    parts: list[dict[str, Any]] = [ids] if ids else [{"OR": ALL_IDS}]
    if cursor.before is not None:
        parts.append({"created_at": {"lte": cursor.before.isoformat()}})
    wanted = checked(
        ListRequest,
        filters={"AND": parts},
        **{name: query.get(name) or None for name in OPTIONS},
        start_date=query.get("start_date") or None,
        end_date=query.get("end_date") or None,
    )
    rows, _ = await read_page(wanted, wanted.tree(), cursor.page, session)
    return rows
