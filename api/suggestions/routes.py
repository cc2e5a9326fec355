"""Suggestions: changes of memories that wait for a person, and the decisions on them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from api.auth.tenant import Caller
from api.dependencies import ApiCall
from api.http.ids import EntityIds, uuid
from api.http.paging import Paged, scoped
from api.http.shared_responses import ScopedPageJson
from api.http.strict_json import StrictJson
from api.suggestions import responses as suggestion_responses
from api.suggestions.requests import AcceptRequest, DecideRequest
from api.suggestions.responses import DecidedJson, SuggestionJson, WouldAcceptJson
from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.suggestions import service as use_cases
from pipeline.suggestions.service import Action

router = APIRouter(prefix="/v1/suggestions", tags=["suggestions"], route_class=StrictJson)


@router.get("/")
async def list_suggestions(
    call: Caller,
    http: Request,
    page: Paged,
    ids: EntityIds,
    state: Annotated[SuggestionState | None, Query()] = None,
    kind: Annotated[SuggestionKind | None, Query()] = None,
) -> ScopedPageJson[SuggestionJson]:
    """Changes of memories that wait for a person, newest first.

    `state`: OPEN, ACCEPTED, REJECTED, DISMISSED, or INVALID once a memory that the suggestion names
    has changed. `kind`: UPDATE, DELETE, COMBINE or RESOLVE.

    Ids restrict them to the scopes with all of these ids. `bounded_parts`: `count` if there are at
    least that many, `results` if some may be missing, because the ids have more than 20,000 scopes.
    """
    listed = await call.ledger.suggestions.page(
        call.project.id, ids=ids, state=state, kind=kind, **page.window
    )
    return scoped(page, listed, suggestion_responses.suggestion, http)


@router.post("/decide/")
async def decide(request: DecideRequest, call: Caller) -> DecidedJson:
    """Accept, reject or dismiss many suggestions: `ids`, or the oldest open ones of a `kind`, at
    most 100 for each call. Each is decided on its own; `error` says why one was not.
    """
    stores = call.api.stores
    rows = await use_cases.decide_many(
        call.project.id,
        request.action,
        ids=request.ids,
        kind=request.kind,
        by=call.grant.key_id,
        ledger=stores.ledger,
        embedder=stores.embedder,
        index=stores.index,
    )
    return suggestion_responses.decided(rows)


@router.get("/{suggestion_id}/")
async def get(suggestion_id: str, call: Caller) -> SuggestionJson:
    """One suggestion: the memories before and after it, their sources, and what would be lost."""
    identity = uuid("suggestion_id", suggestion_id)
    stored = await call.ledger.suggestions.get(call.project.id, identity)
    return suggestion_responses.suggestion(stored)


@router.post("/{suggestion_id}/accept/")
async def accept(
    suggestion_id: str, call: Caller, request: AcceptRequest | None = None
) -> SuggestionJson | WouldAcceptJson:
    """Apply an open suggestion, with the `text` of the body or the proposed one.

    `decision_event_id` is an event with a receipt, which can be undone. 409 if a memory has changed
    since: nothing is written, and the suggestion is INVALID.

    With `dry_run` the response has the receipt that the event would get, and nothing changes.
    """
    text = request.text if request else None
    if request and request.dry_run:
        identity = uuid("suggestion_id", suggestion_id)
        planned = await use_cases.rehearse(
            call.project.id,
            identity,
            text=text,
            by=call.grant.key_id,
            ledger=call.ledger,
            embedder=call.api.stores.embedder,
        )
        return suggestion_responses.would_accept(identity, planned)
    return await _decide(call, suggestion_id, Action.ACCEPT, text)


@router.post("/{suggestion_id}/reject/")
async def reject(suggestion_id: str, call: Caller) -> SuggestionJson:
    """Reject an open suggestion. The same change of the same texts is not suggested again."""
    return await _decide(call, suggestion_id, Action.REJECT)


@router.post("/{suggestion_id}/dismiss/")
async def dismiss(suggestion_id: str, call: Caller) -> SuggestionJson:
    """Put an open suggestion aside without an opinion. It is not suggested again."""
    return await _decide(call, suggestion_id, Action.DISMISS)


async def _decide(
    call: ApiCall, suggestion_id: str, action: Action, text: str | None = None
) -> SuggestionJson:
    """Take one decision. Returns the suggestion."""
    identity, stores = uuid("suggestion_id", suggestion_id), call.api.stores
    await use_cases.decide(
        call.project.id,
        identity,
        action,
        text=text,
        by=call.grant.key_id,
        ledger=stores.ledger,
        embedder=stores.embedder,
        index=stores.index,
    )
    return suggestion_responses.suggestion(
        await stores.ledger.suggestions.get(call.project.id, identity)
    )
