"""Pages of the console, a file for each feature."""

from fastapi import FastAPI
from starlette.routing import Route

from api.console.assets import serve
from api.console.pages import (
    admin,
    costs,
    events,
    failures,
    graph,
    inbox,
    live,
    memories,
    playground,
    proofs,
    replays,
    search,
    signin,
)
from pipeline.settings import Settings

FEATURES = (
    *(signin, live, events, memories, search, inbox, graph, failures, costs, replays),
    *(proofs, admin, playground),
)


def add_to(app: FastAPI, settings: Settings) -> None:
    """Add the console's routes to the app, unless the settings turn it off."""
    if settings.console == "off":
        return
    for feature in FEATURES:
        app.include_router(feature.router)
    app.router.routes.append(Route("/console/static/{name:path}", serve))
