"""Playground: type a conversation, watch it become memory, and ask about it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.adds import routes as adds
from api.adds.requests import AddRequest
from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Changing, Viewing
from pipeline.model_settings import RULES

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/playground")
async def playground(request: Request, session: Viewing) -> Response:
    """The forms of the playground."""
    model = session.api.settings.llm.model
    return show(request, "playground.html", model=model, rules=model == RULES)


@router.post("/playground")
async def remember(request: Request, session: Changing, fields: Form) -> Response:
    """Add the conversation, one message a line, and show its event."""
    turns = [_turn(line) for line in fields.text("conversation").splitlines() if line.strip()]
    wanted = checked(
        AddRequest,
        messages=turns,
        user_id=fields.text("user_id") or "playground",
        dry_run=fields.flag("dry_run"),
    )
    accepted = await adds.add(wanted, session)
    return back(request, f"/events/{accepted['event_id']}", done="accepted")


def _turn(line: str) -> dict[str, str]:
    """A message of a line such as `assistant: Hello`; the user's without a role."""
    role, colon, text = line.partition(":")
    if colon and role.strip().lower() in ("user", "assistant", "system"):
        return {"role": role.strip().lower(), "content": text.strip()}
    return {"role": "user", "content": line.strip()}
