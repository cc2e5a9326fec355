"""Suggestions: changes of memories that were withheld, as a read view."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request

from api.auth.tenant import Caller
from api.dependencies import Given
from api.http.paging import Paged
from api.http.strict_json import StrictJson
from api.views import suggestions as suggestion_views
from pipeline.domain.errors import InvalidInput
from pipeline.domain.suggestions import SuggestionState

router = APIRouter(prefix="/v1/suggestions", tags=["suggestions"], route_class=StrictJson)


@router.get("/")
async def list_suggestions(
    api: Given,
    project: Caller,
    http: Request,
    page: Paged,
    state: Annotated[SuggestionState | None, Query()] = None,
) -> dict[str, Any]:
    """The changes that adds withheld because they would lose something, newest first.

    `state`: OPEN, ACCEPTED, REJECTED, DISMISSED, or INVALID once a memory that the suggestion names
    has changed.
    """
    rows, count = await api.stores.ledger.suggestions.page(
        project.id, state=state, limit=page.limit, offset=page.offset
    )
    return page.envelope([suggestion_views.suggestion(row) for row in rows], count, http)


@router.get("/{suggestion_id}/")
async def get(suggestion_id: str, api: Given, project: Caller) -> dict[str, Any]:
    """One suggestion: the fact, the memories that it would change, the text, and the reason."""
    stored = await api.stores.ledger.suggestions.get(project.id, uuid(suggestion_id))
    return suggestion_views.suggestion(stored)


def uuid(value: str) -> UUID:
    """Parse a suggestion id. Errors: InvalidInput."""
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput("suggestion_id should be a valid UUID") from None
