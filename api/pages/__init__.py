"""Documentation pages of the API, which load nothing from other servers.

Swagger UI and ReDoc come from the package fastapi-offline; nothing else of it is used.
"""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import resources

import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.cpu_thread import beside_loop

# `img-src` prevents ReDoc from loading a logo from its vendor's server.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HTML, SCRIPT, STYLE = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "text/css"
# Package, path in it, media type.
FILES = {
    "/docs": (__package__, "docs.html", HTML),
    "/docs/start.js": (__package__, "start.js", SCRIPT),
    "/docs/swagger-ui-bundle.js": ("fastapi_offline", "static/swagger-ui-bundle.js", SCRIPT),
    "/docs/swagger-ui.css": ("fastapi_offline", "static/swagger-ui.css", STYLE),
    "/redoc": (__package__, "redoc.html", HTML),
    "/redoc/redoc.standalone.js": ("fastapi_offline", "static/redoc.standalone.js", SCRIPT),
}


def add_to(app: FastAPI) -> None:
    """Add the routes of the pages and of the OpenAPI description to the app."""
    app.router.routes.extend(Route(path, page) for path in FILES)
    app.router.routes.append(Route("/openapi.json", OpenApi(app).json))


class OpenApi:
    """The OpenAPI description. It takes 0.6 s of CPU: built once, beside the event loop."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._one_at_a_time = asyncio.Lock()
        self._content: bytes | None = None

    async def json(self, _: Request) -> Response:
        """Serve the description."""
        async with self._one_at_a_time:
            if self._content is None:
                self._content = await beside_loop(lambda: orjson.dumps(self._app.openapi()))
        return Response(self._content, media_type="application/json")


async def page(request: Request) -> Response:
    """Serve a page of documentation."""
    package, path, media_type = FILES[request.scope["path"]]
    headers = {"Content-Security-Policy": POLICY}
    if media_type != HTML:  # scripts and styles do not change within a release
        headers["Cache-Control"] = "public, max-age=3600"
    return Response(_content(package, path), media_type=media_type, headers=headers)


@cache
def _content(package: str, path: str) -> bytes:
    return resources.files(package).joinpath(path).read_bytes()
