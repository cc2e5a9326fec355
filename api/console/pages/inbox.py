"""Inbox: suggestions, open conflicts and runs of the curator, for a person to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.conflicts import responses as conflict_responses
from api.conflicts import routes as conflict_routes
from api.conflicts.requests import ConflictResolveRequest
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, page_number, show, show_beside
from api.console.session import Administering, Changing, Viewing
from api.curator import responses as curator_responses
from api.curator import routes as curator_routes
from api.curator.requests import CuratorRunRequest
from api.http.ids import FormIds
from api.http.paging import PageRange
from api.suggestions import responses as suggestion_responses
from api.suggestions import routes
from api.suggestions.requests import AcceptRequest, DecideRequest
from api.tenants import routes as organization_routes
from api.tenants.requests import CuratorSchedule, ProjectUpdateRequest
from pipeline.domain.conflicts import ConflictState
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.suggestions import SuggestionState
from pipeline.domain.tenants import ProjectId
from pipeline.stores import Ledger

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

SHOWN, RUNS = 25, 20
KINDS = ("suggestions", "conflicts", "curator")


@router.get("/inbox")
async def inbox(
    request: Request, session: Viewing, ids: FormIds, kind: str = "suggestions", state: str = "OPEN"
) -> Response:
    """Suggestions, conflicts, or runs of the curator, newest first; with ids, those of an owner."""
    if kind not in KINDS:
        raise InvalidInput(f"kind is one of {', '.join(KINDS)}.")
    ledger, project = session.ledger, session.project
    rows: Sequence[Mapping[str, Any]]
    page = PageRange(page_number(request), SHOWN)
    match kind:
        case "conflicts":
            wanted = _state(ConflictState, state)
            conflicts = await ledger.conflicts.page(
                project.id, state=wanted, ids=ids, **page.window
            )
            rows = [conflict_responses.conflict(row) for row in conflicts.rows]
            count = conflicts.count
        case "curator":
            runs = await ledger.curator.page(project.id, ids=ids, **page.window)
            rows, count = [curator_responses.run(row) for row in runs.rows], runs.count
        case _:
            chosen = _state(SuggestionState, state)
            stored = await ledger.suggestions.page(project.id, state=chosen, ids=ids, **page.window)
            rows = [suggestion_responses.suggestion(row) for row in stored.rows]
            count = stored.count
    owners = await _owners(ledger, project.id, rows)
    [view] = await ledger.projects.views(project.organization_id, project.id)
    older = {"page": str(page.number + 1)} if page.offset + len(rows) < count else None
    schedule = view.curator and CuratorSchedule.model_validate(view.curator)
    return await show_beside(
        request,
        "inbox.html",
        lambda: {
            "kind": kind,
            "state": state,
            "rows": rows,
            "count": count,
            "owners": owners,
            "older": older,
            "schedule": schedule,
            "owner_ids": ids,
        },
    )


@router.post("/inbox/decide")
async def decide_many(request: Request, session: Changing, fields: Form, ids: FormIds) -> Response:
    """Decide on all ticked suggestions. `ids`: the filter of the list, as in all of these forms."""
    if not fields.all("ids"):
        raise InvalidInput("Tick at least one suggestion first.")
    decision = checked(DecideRequest, action=fields.text("action"), ids=fields.all("ids"))
    result = await routes.decide(decision, session)
    failed = [row for row in result["results"] if row["error"]]
    if failed:
        return show(request, "decided.html", result=result)
    return back(request, "/inbox", done="decided", **ids)


@router.post("/inbox/suggestions/{suggestion_id}/{action}")
async def decide(
    suggestion_id: str, action: str, request: Request, session: Changing, fields: Form, ids: FormIds
) -> Response:
    """Accept, reject or dismiss a suggestion; an acceptance may have another text."""
    match action:
        case "accept":
            accepted = checked(AcceptRequest, text=fields.optional("text"))
            await routes.accept(suggestion_id, session, accepted)
        case "reject":
            await routes.reject(suggestion_id, session)
        case "dismiss":
            await routes.dismiss(suggestion_id, session)
        case _:
            raise InvalidInput("A suggestion is accepted, rejected or dismissed.")
    return back(request, "/inbox", done="decided", **ids)


@router.post("/inbox/conflicts/{conflict_id}")
async def resolve(
    conflict_id: str, request: Request, session: Changing, fields: Form, ids: FormIds
) -> Response:
    """Resolve a conflict: keep one memory or both, or replace them by a text."""
    text, keep = fields.optional("text"), fields.optional("keep")
    if not text and not keep:
        raise InvalidInput("Choose what holds, or write a text.")
    wanted = checked(ConflictResolveRequest, keep=None if text else keep, text=text)
    await conflict_routes.resolve(conflict_id, wanted, session)
    return back(request, "/inbox", done="resolved", kind="conflicts", **ids)


@router.post("/inbox/curator")
async def start(request: Request, session: Changing, fields: Form) -> Response:
    """Start a run of the curator over the memories of these ids."""
    ids = {name: fields.optional(name) for name in ENTITY_IDS}
    await curator_routes.start(checked(CuratorRunRequest, **ids), session)
    return back(request, "/inbox", done="started", kind="curator")


@router.post("/inbox/schedule")
async def schedule(request: Request, session: Administering, fields: Form) -> Response:
    """Set the schedule of the curator; without hours it runs only on request."""
    hours, minutes = fields.text("every_hours"), fields.text("idle_minutes")
    wanted = (
        checked(CuratorSchedule, every_hours=hours or None, idle_minutes=minutes or None)
        if hours
        else None
    )
    change = ProjectUpdateRequest(curator=wanted)
    await organization_routes.update_project(change, session)
    return back(request, "/inbox", done="saved", kind="curator")


@router.post("/inbox/curator/{curator_run_id}/cancel")
async def cancel(
    curator_run_id: str, request: Request, session: Changing, ids: FormIds
) -> Response:
    """End an open run; its suggestions stay."""
    await curator_routes.cancel(curator_run_id, session)
    return back(request, "/inbox", done="ended", kind="curator", **ids)


async def _owners(
    ledger: Ledger, project_id: ProjectId, rows: Sequence[Mapping[str, Any]]
) -> dict[Any, Mapping[str, Any]]:
    """The ids of the owner of each suggestion or conflict, by its id, as far as it has memories."""
    wanted = {
        row["id"]: [
            UUID(str(memory["memory_id"]))
            for memory in row.get("targets") or row.get("memories", ())
        ]
        for row in rows
    }
    ids = sorted({memory_id for memory_ids in wanted.values() for memory_id in memory_ids})
    scopes = {memory.id: memory.scope for memory in await ledger.memories.active(project_id, ids)}
    return {
        row_id: {name: getattr(scopes[memory_id], name) for name in ENTITY_IDS}
        for row_id, memory_ids in wanted.items()
        for memory_id in memory_ids
        if memory_id in scopes
    }


def _state(states: Any, state: str) -> Any:
    """The state to show; None for all."""
    return states(state) if state in list(states) else None
