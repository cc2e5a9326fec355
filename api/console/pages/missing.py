"""The answer to an address of the console that has no page."""

from __future__ import annotations

from fastapi import APIRouter

from api.console.page_route import PageRoute
from pipeline.domain.errors import NotFound

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/{path:path}")
async def missing_page(path: str) -> None:
    """Answer 404 with the page of an error, which leads back to the console."""
    raise NotFound(f"The console has no page {path[:100]}.")
