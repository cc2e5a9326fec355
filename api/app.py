"""The FastAPI app: middleware, routes, and the services of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Route
from starlette.types import ASGIApp

from api import errors, pages
from api.access_log import AccessLog
from api.adds.routes import add, add_v1
from api.audit.recording import Audited
from api.auth.key_cache import KeyRing
from api.auth.rate_limit import RateLimit
from api.backpressure import Backpressure, FairDispatcher
from api.console import pages as console
from api.dependencies import Api
from api.events.watch import EventWatch
from api.http.cross_origin import KnownOrigins, ProjectOrigins
from api.http.disconnect import EndWithClient
from api.http.middleware import (
    AnswerHeaders,
    BodyLimit,
    Measured,
    NoNul,
    OneSlash,
    Traced,
    cross_origin,
)
from api.mcp.endpoint import PATHS as MCP_PATHS
from api.mcp.endpoint import McpEndpoint
from api.openapi import describe
from api.routers import ROUTERS
from api.search.read_sample import ReadSample
from api.system.figures import Figures
from pipeline import __version__, bootstrap, collector
from pipeline.domain.backpressure import Limits
from pipeline.lanes.load import LoadView
from pipeline.loop_watch import LoopWatch
from pipeline.search.concurrency import ConcurrencyLimit
from pipeline.settings import Settings
from pipeline.watchdog import Watchdog
from workers.dispatch import background_dispatcher

ABOUT = """Memory for AI agents that never loses an accepted turn.

Post a turn, get a PENDING event id, read the receipt: what was stored, changed or left, and why.
Speaks the Mem0 Platform's REST API: `MemoryClient(host="http://…")` works unchanged.
"""


def limits(settings: Settings) -> Limits:
    """Backpressure limits from the settings."""
    return Limits(settings.max_scope_events, settings.max_project_events, settings.max_lag_s)


class MemlaneApp(FastAPI):
    """FastAPI app that adds security headers and CORS to every response, error pages included."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings

    def build_middleware_stack(self) -> ASGIApp:
        """The middleware, with response headers and CORS around everything else."""
        app = super().build_middleware_stack()
        origins = self._settings.origins
        app = cross_origin(app, origins) if origins else app

        async def allowed(origin: str) -> bool:
            """Ask the ledger, which the lifespan opens; none without it."""
            api: Api | None = getattr(self.state, "api", None)
            return api is not None and await api.stores.ledger.projects.allow(origin)

        return AnswerHeaders(ProjectOrigins(app, KnownOrigins(allowed)))

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description, with examples and response schemas."""
        return describe(self, self._settings.public_url or "/")


@asynccontextmanager
async def _running(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    """Lifespan of the app: open the stores and services of the process, and close them."""
    stores = bootstrap.stores(settings)
    watch = EventWatch(stores.ledger.events)
    notifications = bootstrap.build_end_notifications(settings, watch)
    listening = asyncio.create_task(notifications.run())
    backpressure = Backpressure(LoadView(stores.ledger.engine), limits(settings))
    backpressure.open()
    dispatcher = FairDispatcher(background_dispatcher(settings), backpressure)
    keys = KeyRing(stores.ledger.keys, RateLimit(settings.max_key_requests_per_min))
    reranker = bootstrap.build_reranker(settings.reranker, stores.ledger.circuits)
    concurrency_limit = ConcurrencyLimit(settings.searches_at_once)
    figures = Figures(stores.ledger.balance, stores.ledger.graph_outbox, stores.ledger.queue)
    accesses = AccessLog(stores.ledger.accesses)
    reads = ReadSample(stores.ledger.reads, on=settings.search_sample_days > 0)
    app.state.api = Api(
        settings,
        stores,
        dispatcher,
        keys,
        watch,
        backpressure,
        figures,
        accesses,
        reads,
        reranker,
        concurrency_limit,
    )
    collector.spare_loaded()
    watched = LoopWatch(asyncio.get_running_loop(), slow_s=settings.loop_slow_s)
    watchdog = Watchdog(watched, lambda: None, most=1, stuck_s=settings.stuck_s)
    watched.start()
    watchdog.start()
    models = (settings.embedder, settings.reranker)
    warming = [
        asyncio.create_task(bootstrap.warm(*models)),
        asyncio.create_task(bootstrap.warm_used_embedder(stores)),
    ]
    yield
    for task in warming:
        task.cancel()
    for part in (app.state.mcp, backpressure, figures, accesses, reads):
        await part.close()
    listening.cancel()
    await notifications.close()
    await watch.close()
    dispatcher.close()
    await stores.close()
    watchdog.close()
    watched.close()


def create_app(settings: Settings) -> FastAPI:
    """Build the app of one API process; its lifespan opens and closes all connections."""
    described = settings.docs == "on"
    app = MemlaneApp(
        settings,
        title="Memlane",
        version=__version__,
        description=ABOUT,
        lifespan=partial(_running, settings=settings),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # see api.pages
        redirect_slashes=False,
        strict_content_type=False,  # a plain `curl -d` means JSON too
        exception_handlers=errors.HANDLERS,
    )
    for router in ROUTERS:  # not by include_router(), see api.routers
        app.router.routes.extend(router.routes)
    app.state.routes = [
        route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema
    ]
    app.state.described = described
    if described:
        pages.add_to(app)
    console.add_to(app, settings)
    mcp = McpEndpoint(app, app.version)
    app.router.routes.extend(Route(path, mcp, methods=["POST"]) for path in MCP_PATHS)
    app.state.mcp = mcp
    _add_middleware(app, settings)
    return app


def _add_middleware(app: FastAPI, settings: Settings) -> None:
    """Wrap the routes, from the innermost middleware to the outermost."""
    app.add_middleware(Audited)
    app.add_middleware(EndWithClient, adds=(add, add_v1))
    app.add_middleware(Measured)
    if settings.traces_url:
        app.add_middleware(Traced)
    app.add_middleware(BodyLimit, limit_bytes=settings.max_body_bytes)
    app.add_middleware(NoNul)
    app.add_middleware(OneSlash)
