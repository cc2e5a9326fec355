"""Search debugger: the score of each result by channel, and why others are not among them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.console.forms import checked
from api.console.page_route import PageRoute
from api.console.rendering import show
from api.console.session import Viewing
from api.dependencies import Api, Given
from api.http.ids import EntityIds, uuid
from api.search.actions import answer_search, whole
from api.search.schemas import SearchRequest
from pipeline.domain.errors import InvalidInput
from pipeline.tenants.projects import Project

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/search")
async def search(
    request: Request,
    api: Given,
    session: Viewing,
    ids: EntityIds,
    q: str = "",
    other: str = "",
    why: str = "",
    turns: str = "",
    top_k: str = "",
) -> Response:
    """The results of one or two questions, with their scores. `why`: ids to explain."""
    questions = [text for text in (q.strip(), other.strip()) if text]
    if questions and not ids:
        raise InvalidInput("Give a user, agent, app or run: a search covers the memories of one.")
    named = [str(uuid("id", word)) for word in why.replace(",", " ").split()]
    answers = [
        await _ask(api, session.project, text, ids, named, turns=bool(turns), top_k=top_k)
        for text in questions
    ]
    return show(request, "search.html", answers=list(zip(questions, answers, strict=True)))


async def _ask(
    api: Api,
    project: Project,
    question: str,
    ids: dict[str, str],
    named: list[str],
    *,
    turns: bool,
    top_k: str,
) -> dict[str, Any]:
    """The API's response to a question, with explanations and their memories' texts."""
    wanted = checked(
        SearchRequest,
        query=question,
        filters=ids,
        explain=named or True,
        include=["facts", "turns"] if turns else None,
        top_k=top_k or None,
    )
    answer = await answer_search(wanted, api, project, None, whole)
    verdicts = answer.get("explanation", [])
    missing = [uuid("id", row["id"]) for row in verdicts]
    rows = await api.stores.ledger.memories.active(project.id, missing)
    texts = {str(row.id): row.text for row in rows}
    return answer | {"explanation": [row | {"memory": texts.get(row["id"])} for row in verdicts]}
