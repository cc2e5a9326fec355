"""Costs: calls, tokens and money by model, user and day, with the project's budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from api.console.forms import Fields, Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Administering, ConsoleSession, Viewing
from api.events import usage as usage_views
from api.tenants import routes
from api.tenants.requests import BudgetsRequest, ProjectUpdateRequest
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import period
from pipeline.domain.modes import budgets_of
from pipeline.ingest.modes import budget_uses

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)

# Projects of the organization whose costs are shown.
MOST_PROJECTS = 100


@router.get("/costs")
async def costs(
    request: Request, session: Viewing, user_id: str = "", start_date: str = "", end_date: str = ""
) -> Response:
    """The costs of the project or of one of its users."""
    bounds = {name: at.date() for name, at in period(start_date, end_date).items()}
    ledger, project = session.ledger, session.project
    spent = await ledger.costs.spending(
        project.id, user_id=user_id or None, start=bounds.get("gte"), end=bounds.get("lte")
    )
    [view] = await ledger.projects.views(project.organization_id, project.id)
    usage = usage_views.spending(spent)
    uses = await budget_uses(project.id, user_id or None, budgets_of(view.budget), ledger.costs)
    return show(
        request,
        "costs.html",
        usage=usage,
        budget=view.budget or {},
        uses=uses,
        projects=await _by_project(session),
        series=_series(usage["days"]),
    )


@router.post("/costs/budget")
async def set_budget(request: Request, session: Administering, fields: Form) -> Response:
    """Set the budgets of the project and of each of its users; an empty form removes them."""
    budgets = {who: limits for who in ("project", "user") if (limits := _limits(fields, who))}
    wanted = checked(BudgetsRequest, **budgets) if budgets else None
    change = ProjectUpdateRequest(budget=wanted)
    await routes.update_project(change, session)
    return back(request, "/costs", done="saved")


def _limits(fields: Fields, who: str) -> dict[str, Any]:
    """The limits in the form, of the project or of each user."""
    limits: dict[str, Any] = {}
    for name, kind in (("tokens", int), ("usd", float)):
        if text := fields.text(f"{who}_{name}"):
            try:
                limits[name] = kind(text)
            except ValueError:
                raise InvalidInput(f"{who}, {name}: {text[:40]!r} is no number.") from None
    return limits and limits | {"per": fields.text(f"{who}_per") or "day"}


async def _by_project(session: ConsoleSession) -> list[dict[str, Any]]:
    """The costs of each project of the organization, for a key that administers it."""
    if not session.grant.administers_organization:
        return []
    ledger = session.ledger
    views = await ledger.projects.views(session.project.organization_id)
    return [
        {"name": view.name, "id": view.id}
        | usage_views.paid((await ledger.costs.spending(view.id)).total)
        for view in views[:MOST_PROJECTS]
    ]


def _series(days: Sequence[usage_views.DayUsageJson]) -> list[list[float]]:
    """Days as Unix times, with calls and thousands of tokens."""
    midnight = datetime.min.time().replace(tzinfo=UTC)
    return [
        [datetime.combine(row["day"], midnight).timestamp() for row in days],
        [row["calls"] for row in days],
        [(row["prompt_tokens"] + row["completion_tokens"]) / 1000 for row in days],
    ]
