"""Saved views: addresses of pages with filters, by name, shared by all keys of the project."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BaseModel, Field

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import SAVED_PATHS, back
from api.console.session import Changing
from api.http.ids import uuid
from pipeline.domain.errors import InvalidInput
from pipeline.domain.limits import one_line

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

LONGEST_QUERY, MOST_FILTERS = 4_000, 40


def _page(path: str) -> str:
    if path not in SAVED_PATHS:
        raise ValueError(f"give one of {', '.join(SAVED_PATHS)}")
    return path


class ViewForm(BaseModel):
    """A view to save. `query`: the query string of the page."""

    name: Annotated[str, Field(min_length=1, max_length=80), AfterValidator(one_line)]
    path: Annotated[str, AfterValidator(_page)]
    query: Annotated[str, Field(max_length=LONGEST_QUERY)] = ""

    def values(self) -> dict[str, Any]:
        """The query string by name, without positions in a list. Errors: InvalidInput."""
        try:
            pairs = parse_qsl(self.query, max_num_fields=MOST_FILTERS)
        except ValueError:
            raise InvalidInput(f"A view has at most {MOST_FILTERS} filters.") from None
        return {name: value for name, value in pairs if name not in ("before", "skip", "done")}


@router.post("/views")
async def save(request: Request, session: Changing, fields: Form) -> Response:
    """Save the filters of a page under a name."""
    view = checked(
        ViewForm, name=fields.text("name"), path=fields.text("path"), query=fields.text("query")
    )
    views = session.ledger.saved_views
    await views.save(session.project.id, view.name, view.path, view.values())
    return back(request, view.path, done="view-saved", **view.values())


@router.post("/views/{view_id}/delete")
async def remove(view_id: str, request: Request, session: Changing) -> Response:
    """Delete a saved view."""
    await session.ledger.saved_views.remove(session.project.id, uuid("view_id", view_id))
    return back(request, "/live", done="view-deleted")
