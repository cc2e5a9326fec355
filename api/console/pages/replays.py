"""Replays of a scope: start one, follow it, read its differences, switch to it or discard it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Changing, Viewing
from api.http.ids import FormIds
from api.replays import responses as replay_responses
from api.replays import routes
from api.replays.requests import BeginRequest, SwitchRequest
from pipeline.domain.filters import ENTITY_IDS

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

SHOWN = 50
# Rows of each kind of change of a memory, or of a relation; the page counts the rest.
MOST_CHANGES, MOST_RELATIONS = 200, 100


@router.get("/replays")
async def list_replays(request: Request, session: Viewing, ids: FormIds) -> Response:
    """The newest replays, those of an owner with ids, and the form that starts one."""
    shadows = session.ledger.shadows
    listed = await shadows.page(session.project.id, ids=ids, limit=SHOWN, offset=0)
    models = sorted({session.api.settings.llm.model, *session.api.settings.replay_models})
    return show(
        request,
        "replays.html",
        replays=[replay_responses.replay(row) for row in listed.rows],
        models=models,
        embedder=session.api.settings.embedder.model,
    )


@router.post("/replays")
async def begin(request: Request, session: Changing, fields: Form) -> Response:
    """Start a replay."""
    names = (*ENTITY_IDS, "custom_instructions", "llm_model", "embedder_model", "answers")
    wanted = checked(BeginRequest, **{name: fields.optional(name) for name in names})
    begun = await routes.begin(wanted, session)
    return back(request, f"/replays/{begun['id']}", done="started")


@router.get("/replays/{replay_id}")
async def replay(replay_id: str, request: Request, session: Viewing) -> Response:
    """One replay, with the changes that a switch would make once it is ready."""
    row = await routes.get(replay_id, session)
    ready = row["status"] == "READY"
    diff = await routes.diff(replay_id, session) if ready else None
    most = {"memories": MOST_CHANGES, "relations": MOST_RELATIONS}
    return show(request, "replay.html", replay=row, changes=diff, most=most)


@router.post("/replays/{replay_id}/switch")
async def switch(replay_id: str, request: Request, session: Changing, fields: Form) -> Response:
    """Replace the memories of the scope by those of the replay."""
    wanted = SwitchRequest(force=fields.flag("force"))
    await routes.switch(replay_id, session, wanted)
    return back(request, f"/replays/{replay_id}", done="switched")


@router.post("/replays/{replay_id}/discard")
async def discard(replay_id: str, request: Request, session: Changing) -> Response:
    """Delete the replay; nothing else changes."""
    await routes.discard(replay_id, session)
    return back(request, "/replays", done="discarded")
