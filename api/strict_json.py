"""Bodies read as JSON is defined: no NaN, no Infinity, no half of a surrogate pair.

Python's own reader takes them all, and PostgreSQL refuses them where it is too late to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute


class StrictRequest(Request):
    async def json(self) -> Any:
        return orjson.loads(await self.body())


class StrictJson(APIRoute):
    """A route that hands its body to the parser as above; a bad one is a 400 like any other."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
