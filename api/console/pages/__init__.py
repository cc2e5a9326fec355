"""Pages of the console, a file for each feature."""

from fastapi import FastAPI
from starlette.routing import Route

from api.console.assets import serve
from api.console.pages import (
    admin,
    audit,
    costs,
    events,
    failures,
    graph,
    inbox,
    live,
    memories,
    missing,
    playground,
    proofs,
    replays,
    search,
    signin,
    trends,
    user,
    user_tokens,
    users,
    views,
)
from pipeline.settings import Settings

FEATURES = (
    *(signin, live, events, users, memories, search, inbox, graph, failures, costs, replays),
    *(proofs, admin, user_tokens, playground, audit, trends, views),
)


def add_to(app: FastAPI, settings: Settings) -> None:
    """Add the user's page, and the console's pages unless the settings turn them off."""
    app.router.routes.extend(user.router.routes)
    for feature in FEATURES if settings.console == "on" else ():
        app.router.routes.extend(feature.router.routes)
    app.router.routes.append(Route("/console/static/{name:path}", serve))
    if settings.console == "on":  # last: it matches every address
        app.router.routes.extend(missing.router.routes)
