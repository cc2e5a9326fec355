"""Bodies read as JSON is defined, within bounds: no NaN, no Infinity, no half of a surrogate pair,
no NUL, and no more values or levels than the largest honest request has.

All checks look at the bytes, in linear time and in C: the event loop waits for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from itertools import accumulate
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from api.http import unknown_fields
from pipeline.domain.errors import InvalidInput

# A batch of 1,000 memories with ten keys of metadata each has 15,000.
MOST_VALUES = 20_000
DEEPEST = 64

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
_STARTS = (b",", b"[", b"{")
_LEVEL = bytes(1 if code in b"[{" else 2 for code in range(256))
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_STEP = {1: 1, 2: -1}


class StrictRequest(Request):
    """A request whose JSON is read within the bounds."""

    async def json(self) -> Any:
        """The parsed body. Errors: HTTPException 400."""
        try:
            return read(await self.body())
        except InvalidInput as error:
            # FastAPI answers any other exception with a text of its own.
            raise HTTPException(400, str(error)) from None


class StrictJson(APIRoute):
    """A route that hands its body to the parser as above; a bad one is a 400 like any other."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, with StrictRequest for the request."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            ignored = unknown_fields.begin()
            response = await handle(StrictRequest(request.scope, request.receive))
            if ignored:
                response.headers[unknown_fields.HEADER] = unknown_fields.shown(ignored)
            return response

        return strict


def read(body: bytes) -> Any:
    """The value of a JSON text. Errors: InvalidInput for a bound, else JSONDecodeError."""
    if b"\\u0000" in body and _NUL.search(body):
        raise InvalidInput("The body holds a NUL character (\\u0000); remove it.")
    if sum(map(body.count, _STARTS)) > MOST_VALUES or body.count(b"[") + body.count(b"{") > DEEPEST:
        _bound(_STRING.sub(b"", body))
    return orjson.loads(body)


def _bound(structure: bytes) -> None:
    """Check a JSON text without its strings."""
    values = sum(map(structure.count, _STARTS))
    if values > MOST_VALUES:
        raise InvalidInput(
            f"The body holds more than {MOST_VALUES:,} values; send it in several requests."
        )
    brackets = structure.translate(_LEVEL, _NOT_BRACKETS)
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > DEEPEST:
        raise InvalidInput(f"The body nests deeper than {DEEPEST} levels; flatten it.")
