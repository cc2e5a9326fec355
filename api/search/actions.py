"""A search as every dialect and the console run it, and its response."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from api.auth.users import require_key
from api.dependencies import ApiCall
from api.http.large_answers import answer
from api.lists.after_event import caught_up
from api.search import responses as search_responses
from api.search.read_sample import may_be_sampled
from api.search.requests import SearchRequest
from api.search.responses import HitJson, SearchAnswerJson
from pipeline import telemetry, tracing
from pipeline.domain.memories import Memory
from pipeline.memories.reads import SampledRead
from pipeline.search import service as search
from pipeline.search.query import Query
from pipeline.search.ranking.calibration import scale

T = TypeVar("T")


def whole(response: SearchAnswerJson) -> SearchAnswerJson:
    """The whole response."""
    return response


def results(response: SearchAnswerJson) -> list[HitJson]:
    """The results of a response alone."""
    return response["results"]


async def answer_search(
    request: SearchRequest, call: ApiCall, user: str | None, shape: Callable[[SearchAnswerJson], T]
) -> T:
    """The response to a search, after the event of `after_event`."""
    token = await caught_up(request, call, user)
    most = request.top_k * (1 + 2 * request.context_turns)
    async with call.api.concurrency_limit.one_large(call.project.id, most):
        ranking = await ranked(request, call, user)

        def build() -> T:
            response = search_responses.search(
                ranking, max_tokens=request.max_tokens, fields=request.fields
            )
            return shape({**response, **token})

        return await answer(build, *search_responses.size(ranking))


def _query(request: SearchRequest, call: ApiCall, user: str | None) -> Query:
    """The query of a request, with the settings of the project and the server."""
    question, *earlier = request.turns()
    return Query(
        text=question,
        earlier=earlier,
        filter=request.tree(user),
        top_k=request.top_k,
        threshold=request.threshold,
        show_expired=request.show_expired,
        show_superseded=request.show_superseded,
        snapshot=request.snapshot(),
        facts=request.wants("facts"),
        turns=request.wants("turns"),
        now=request.reference_date,
        around=request.context_turns,
        explain=request.named(),
        keyword_search=request.keyword_search,
        filter_memories=request.filter_memories,
        rerank=request.rerank,
        default_cut=call.project.default_cut and request.leaves_the_number_open,
        weights=call.api.settings.search,
        decay=call.project.decay,
        graph=request.enable_graph is not False,
        scale=scale(call.api.stores.embedder.name, call.api.settings.semantic_scale),
    )


async def ranked(
    request: SearchRequest, call: ApiCall, user: str | None = None
) -> search.SearchResult:
    """Run a search, and count it. `user`: of a token, to whom it is confined."""
    if request.explain:
        require_key(user, "explain")
    query = _query(request, call, user)
    stores = call.api.stores
    begun = time.perf_counter()
    traced = {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": str(call.project.id),
    }
    with tracing.span("search_memory", traced) as span:
        span.text("gen_ai.memory.query.text", query.text)
        ranking = await search.search(
            call.project.id,
            query,
            ledger=stores.ledger,
            embedder=stores.embedder,
            index=stores.index,
            turns=stores.turns,
            reranker=call.api.reranker,
            limits=search.SearchLimits(
                call.api.concurrency_limit, call.api.settings.search_embedder_timeout_s
            ),
        )
        span.set({"memlane.results": len(ranking.hits)})
    call.api.figures.searched(call.project.id)
    if call.project.decay:
        facts = (hit.passage.id for hit in ranking.hits if isinstance(hit.passage, Memory))
        call.api.accesses.count(facts)
    if not request.explain and may_be_sampled(query.filter):
        call.api.reads.searched(
            [
                SampledRead(hit.passage.id, query.text, place, hit.score.total)
                for place, hit in enumerate(ranking.hits, 1)
                if isinstance(hit.passage, Memory)
            ]
        )
    telemetry.search_seconds.observe(time.perf_counter() - begun)
    return ranking
