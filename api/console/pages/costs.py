"""Costs: calls, tokens and money by model, user and day, with the project's budget."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from api.console.page_route import PageRoute
from api.console.rendering import show
from api.console.session import Viewing
from api.dependencies import Given
from api.views import usage as usage_views
from pipeline.domain.filters import period

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/costs")
async def costs(
    request: Request,
    api: Given,
    session: Viewing,
    user_id: str = "",
    start_date: str = "",
    end_date: str = "",
) -> Response:
    """The costs of the project or of one of its users."""
    bounds = {name: at.date() for name, at in period(start_date, end_date).items()}
    ledger, project = api.stores.ledger, session.project
    spent = await ledger.costs.spending(
        project.id, user_id=user_id or None, start=bounds.get("gte"), end=bounds.get("lte")
    )
    [view] = await ledger.projects.views(project.organization_id, project.id)
    usage = usage_views.spending(spent)
    return show(
        request, "costs.html", usage=usage, budget=view.budget, series=_series(usage["days"])
    )


def _series(days: list[dict[str, Any]]) -> list[list[float]]:
    """Days as Unix times, with calls and thousands of tokens."""
    midnight = datetime.min.time().replace(tzinfo=UTC)
    return [
        [datetime.combine(row["day"], midnight).timestamp() for row in days],
        [row["calls"] for row in days],
        [(row["prompt_tokens"] + row["completion_tokens"]) / 1000 for row in days],
    ]
