"""The user's page: what is known of one user, for that user, with a user's token.

It can be embedded: there is no cookie, each form carries the token. The first page takes the token
from the fragment of the address (`/user/#mlu_…`), which browsers do not send, and posts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from api.audit import recording as audit
from api.auth.users import NamedOwner, require_own
from api.console.cursors import MOST_SKIPPED, PageCursor
from api.console.forms import Fields, Form, checked, first_text, first_value, know_visitor
from api.console.page_route import PageRoute
from api.console.rendering import POLICY, number_in, show, show_beside
from api.dependencies import ApiCall, Given
from api.erasures import routes as erasure_routes
from api.erasures.requests import ErasureRequest
from api.errors import Unauthorized
from api.http.ids import uuid
from api.http.streams import while_valid
from api.lists.requests import ListRequest
from api.lists.routes import read_page
from api.memories import responses as memory_responses
from api.memories import routes
from api.memories.requests import UpdateRequest
from api.user_tokens.download import AS_FILE, download
from pipeline.domain.errors import ChangedSince
from pipeline.domain.filters import moment
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import Right
from pipeline.ledger.fair_pool import take_turns_as
from pipeline.settings import Settings
from pipeline.tenants.api_keys import UserRights

# Ends of the paths of forms that change something.
CHANGES = ("/correct", "/delete", "/erase", "/download")
CHANGED_SINCE = (
    "It has changed since you opened it. The new text is shown above yours: save to replace it."
)
ENDED = "This page has ended. Go back to where you came from, and open it again."


def _policy(ancestors: list[str]) -> str:
    """The policy of a page that these may embed. Browsers then ignore X-Frame-Options."""
    return POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {' '.join(ancestors)}")


def _base(settings: Settings) -> str:
    """Path of the user's page, below that of the public URL."""
    return urlsplit(settings.public_url or "").path.rstrip("/") + "/user"


class UserRoute(PageRoute):
    """Answers errors with a page that does not lead into the console.

    Any site may embed it, because it shows nothing of the user: within another page, a browser
    would show its own error in place of the reason, such as a token that has ended.
    """

    error_template = "user_error.html"
    error_policy = _policy(["*"])

    async def error_values(self, request: Request, _: Exception) -> Mapping[str, Any]:
        """The visit, if its token is valid: then the page leads back. And what was written."""
        visit = getattr(request.state, "visit", None)
        written = "" if request.method == "GET" else await first_text(request, "text")
        return {
            "visit": visit,
            "own": _base(request.app.state.api.settings),
            "written": written,
        }


router = APIRouter(prefix="/user", route_class=UserRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class UserVisit(ApiCall):
    """A request with a user's token."""

    request: Request
    token: str
    user: UserRights

    @property
    def user_id(self) -> str:
        """The user of the token."""
        return self.user.user_id

    @property
    def owner(self) -> NamedOwner:
        """The user of the token, as the owner of memories."""
        return (("user_id", self.user_id),)

    def may(self, right: str) -> bool:
        """Tell if the token has this right: read, correct or delete."""
        return Right(right) in self.user.rights


async def visit_of(request: Request, api: Given) -> UserVisit:
    """The visit of a form with a token, which is checked before the form is parsed.

    Errors: Unauthorized; Forbidden without the right read; Overloaded above the rate limit.
    """
    token = await first_value(request, "token")
    address = request.client.host if request.client else ""
    grant = await api.keys.grant(token, address) if token else None
    if grant is None or grant.user is None:
        raise Unauthorized(ENDED)
    know_visitor(request)
    take_turns_as(grant.project.id)
    if allowance := api.keys.allowance(grant):
        allowance.require()
    grant.user.require(Right.READ)
    if request.url.path.endswith(CHANGES):
        await audit.begin(request, api.stores.ledger.audit, grant, grant.project.id)
    request.state.visit = visit = UserVisit(api, grant, grant.project, request, token, grant.user)
    return visit


Visit = Annotated[UserVisit, Depends(visit_of)]


@router.get("")
@router.get("/")
async def enter(request: Request, api: Given) -> Response:
    """A form for the token; a script fills it from the fragment of the address.

    Any site may embed it, because it shows nothing. The pages behind it can be embedded only by the
    origins that the project allows.
    """
    page = show(request, "user_enter.html", own=_base(api.settings))
    page.headers["Content-Security-Policy"] = _policy(["*"])
    return page


@router.get("/memories/{path:path}")
@router.get("/download")
@router.get("/erase")
async def only_forms(request: Request) -> Response:
    """Lead to the first page: these addresses take only forms, which carry the token."""
    return RedirectResponse(f"{_base(request.app.state.api.settings)}/", status_code=303)


@router.post("")
@router.post("/")
async def memories(visit: Visit, fields: Form) -> Response:
    """The user's memories, newest first, with the words that each came from."""
    return await _overview(visit, fields)


@router.post("/memories/{memory_id}")
async def memory(memory_id: str, visit: Visit) -> Response:
    """One memory with its history."""
    return await _detail(memory_id, visit)


@router.post("/memories/{memory_id}/correct")
async def correct(memory_id: str, visit: Visit, fields: Form) -> Response:
    """Change the text of a memory, unless it has changed since the page was shown."""
    visit.user.require(Right.CORRECT)
    text, version = fields.text("text"), fields.optional("version")
    change = checked(UpdateRequest, text=text, version=version)
    try:
        await routes.update(memory_id, change, visit, visit.owner)
    except ChangedSince:
        page = await _detail(memory_id, visit, note=CHANGED_SINCE, written=text)
        page.status_code = 409
        return page
    return await _detail(memory_id, visit, note="Your correction is stored.")


@router.post("/memories/{memory_id}/delete")
async def delete(memory_id: str, visit: Visit, fields: Form) -> Response:
    """Delete a memory."""
    visit.user.require(Right.DELETE)
    await routes.delete(memory_id, visit, visit.owner)
    first = Fields({"token": [visit.token]})
    return await _overview(visit, first, note="It is deleted.")


@router.post("/download")
async def download_all(visit: Visit) -> Response:
    """Everything that is stored of the user, as a file. It ends early with the token."""

    async def is_valid() -> bool:
        return await visit.api.keys.grant(visit.token) is not None

    parts = while_valid(download(visit, visit.user_id), is_valid)
    return StreamingResponse(parts, headers=AS_FILE)


@router.post("/erase")
async def erase(visit: Visit, fields: Form) -> Response:
    """Erase the user everywhere, and show the receipt's id. The token ends with that."""
    visit.user.require(Right.DELETE)
    fields.require("sure")
    wanted = checked(ErasureRequest, user_id=visit.user_id)
    begun = await erasure_routes.erase(wanted, visit, visit.user_id)
    receipt = await erasure_routes.receipt(UUID(begun["event_id"]), visit)
    return await _show(visit, "user_erased.html", lambda: {"receipt": receipt})


async def _overview(visit: UserVisit, fields: Fields, note: str | None = None) -> Response:
    """A page of memories. `note`: a message above them."""
    before = fields.text("before")
    cursor = PageCursor(
        moment("before", before) if before else None,
        min(number_in(fields.text("skip"), digits=5), MOST_SKIPPED),
    )
    rows = await _page(visit, cursor, fields.optional("keywords"))
    histories = visit.api.stores.ledger.histories
    sources = await histories.inputs(visit.project.id, [row.id for row in rows])
    return await _show(
        visit,
        "user.html",
        lambda: {
            "memories": [
                {**memory_responses.memory(row), "input": sources.get(UUID(str(row.id)))}
                for row in rows
            ],
            "keywords": fields.text("keywords"),
            "older": cursor.after([row.created_at for row in rows if row.created_at]),
            "note": note,
        },
    )


async def _detail(
    memory_id: str, visit: UserVisit, *, note: str | None = None, written: str | None = None
) -> Response:
    """The page of one memory. `note`: a message above it. `written`: a correction to go on with."""
    ledger, identity = visit.api.stores.ledger, uuid("memory_id", memory_id)
    await require_own(visit, identity, visit.owner)
    row = await ledger.memories.get(visit.project.id, identity)
    entries = await ledger.histories.of(visit.project.id, identity)
    return await _show(
        visit,
        "user_memory.html",
        lambda: {
            "memory": memory_responses.memory(row),
            "history": [memory_responses.history(entry) for entry in entries],
            "note": note,
            "written": written,
        },
    )


async def _show(visit: UserVisit, template: str, values: Callable[[], dict[str, Any]]) -> Response:
    """A page that the project's origins may embed."""
    fixed = {"visit": visit, "own": _base(visit.api.settings)}
    page = await show_beside(visit.request, template, lambda: fixed | values())
    page.headers["Content-Security-Policy"] = _policy(["'self'", *visit.project.allowed_origins])
    return page


async def _page(visit: UserVisit, cursor: PageCursor, keywords: str | None) -> Sequence[Memory]:
    """A page of the user's active memories."""
    before = cursor.before and {"created_at": {"lte": cursor.before.isoformat()}}
    wanted = checked(ListRequest, filters=before, keywords=keywords)
    tree = wanted.tree(visit.user_id)
    rows, _ = await read_page(wanted, tree, cursor.page, visit)
    return rows
