"""The answer to an address of the console that has no page."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.console.page_route import PageRoute
from api.console.rendering import back
from api.console.unsent import page_with_form
from pipeline.domain.errors import NotFound

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/{path:path}")
async def missing_page(path: str, request: Request) -> Response:
    """Lead to the page of a form, if the address takes only that; else 404 with a page.

    A browser asks for such an address when a person goes back or loads it again after a sign-in.
    """
    if page := page_with_form(f"/{path}"):
        place, _, kind = page.partition("?kind=")
        return back(request, place, done="only-a-form", **({"kind": kind} if kind else {}))
    raise NotFound(f"The console has no page {path[:100]}.")
