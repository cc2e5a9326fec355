"""Scripts and styles of the console. Vendored files stand in vendor.json with their hashes.

The address of a file has its hash, so browsers may cache it without asking again.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from fastapi import Request, Response
from jinja2 import pass_context
from jinja2.runtime import Context

from pipeline.domain.errors import NotFound

TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
         "svg": "image/svg+xml"}  # fmt: skip
FILES = (
    "console.css",
    "console.js",
    "user.js",
    "icon.svg",
    "vendor/htmx.min.js",
    "vendor/hx-sse.min.js",
    "vendor/uplot.min.js",
    "vendor/uplot.min.css",
    "vendor/force-graph.min.js",
)
FOREVER = "public, max-age=31536000, immutable"


@cache
def content(name: str) -> bytes:
    """The bytes of a file."""
    return resources.files("api.console").joinpath("static", *name.split("/")).read_bytes()


@cache
def digest(name: str) -> str:
    """The start of the SHA-256 of a file."""
    return hashlib.sha256(content(name)).hexdigest()[:16]


@pass_context
def address(context: Context, name: str) -> str:
    """The address of a file, with its hash."""
    return f"{context['base']}/static/{name}?{digest(name)}"


async def serve(request: Request) -> Response:
    """Serve a file. Errors: NotFound."""
    name = str(request.path_params["name"])
    if name not in FILES:
        raise NotFound("No such file.")
    cached = {"Cache-Control": FOREVER} if request.url.query == digest(name) else {}
    return Response(content(name), media_type=TYPES[name.rpartition(".")[2]], headers=cached)
