"""Search debugger: the score of each result by channel, and why others are not among them."""

# No `from __future__ import annotations`: FastAPI cannot resolve such annotations of a class.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from api.console.forms import checked
from api.console.page_route import PageRoute
from api.console.rendering import show_beside
from api.console.session import ConsoleSession, Viewing
from api.http.ids import FormIds, uuid
from api.search import responses as search_responses
from api.search.actions import ranked
from api.search.requests import SearchRequest
from pipeline.domain.errors import InvalidInput
from pipeline.search.service import SearchResult

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class SearchForm:
    """The fields of the page. `other`: a second question. `why`: ids to explain."""

    q: str = ""
    other: str = ""
    why: str = ""
    turns: str = ""
    top_k: str = ""


@router.get("/search")
async def search(
    request: Request, session: Viewing, ids: FormIds, form: Annotated[SearchForm, Depends()]
) -> Response:
    """The results of one or two questions, with their scores."""
    questions = [text for text in (form.q.strip(), form.other.strip()) if text]
    if questions and not ids:
        raise InvalidInput("Give a user, agent, app or run: a search covers the memories of one.")
    named = [str(uuid("id", word)) for word in form.why.replace(",", " ").split()]
    answers = [await _ask(session, text, ids, named, form) for text in questions]
    return await show_beside(
        request,
        "search.html",
        lambda: {
            "answers": [
                (question, _answer(ranking, texts))
                for question, (ranking, texts) in zip(questions, answers, strict=True)
            ]
        },
    )


async def _ask(
    session: ConsoleSession, question: str, ids: dict[str, str], named: list[str], form: SearchForm
) -> tuple[SearchResult, dict[str, str]]:
    """The result of a search with explanations, and the texts of the explained memories."""
    wanted = checked(
        SearchRequest,
        query=question,
        filters=ids,
        explain=named or True,
        include=["facts", "turns"] if form.turns else None,
        top_k=form.top_k or None,
    )
    project = session.project
    async with session.api.concurrency_limit.one_large(project.id, wanted.top_k):
        ranking = await ranked(wanted, session)
    explained = [row.id for row in ranking.explained]
    rows = await session.ledger.memories.active(project.id, explained)
    return ranking, {str(row.id): row.text for row in rows}


def _answer(ranking: SearchResult, texts: Mapping[str, str]) -> dict[str, Any]:
    """The API's response, with the texts of the explained memories."""
    answer = search_responses.search(ranking)
    verdicts = [row | {"memory": texts.get(row["id"])} for row in answer.get("explanation", [])]
    return {**answer, "explanation": verdicts}
