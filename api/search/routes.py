"""Searches, in the formats of all three API versions."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth.users import OfUser, UserReading
from api.http.strict_json import StrictJson
from api.http.typed_route import example
from api.search.actions import answer_search, results, whole
from api.search.requests import OlderSearchRequest, SearchRequest
from api.search.responses import HitJson, SearchAnswerJson

router = APIRouter(tags=["memories"], route_class=StrictJson)


@router.post("/v3/memories/search/", responses=example(__package__))
async def search_memories(
    request: SearchRequest, call: UserReading, user: OfUser = None
) -> SearchAnswerJson:
    """Memories that answer the query, best first, and the relations around them. `include` adds
    verbatim turns, `max_tokens` a `context` that is ready for a prompt.

    A search without `top_k`, `threshold` and `max_tokens` leaves out results that show no sign of
    an answer; `cut` has their number and the rank of the first one.

    `pending`: number of events of the ids in the filter that have not ended, up to 1,000. With
    `after_event` the response waits for the end of that event, at most `wait` seconds, and contains
    its status.
    """
    return await answer_search(request, call, user, whole)


@router.post("/v1/memories/search/")
@router.post("/v2/memories/search/")
async def search_older(
    request: OlderSearchRequest, call: UserReading, user: OfUser
) -> SearchAnswerJson | list[HitJson]:
    """A search of older clients: a bare list, or an object for `output_format` v1.1."""
    if request.output_format == "v1.1":
        return await answer_search(request, call, user, whole)
    return await answer_search(request, call, user, results)
