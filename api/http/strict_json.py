"""Strict JSON bodies: no NaN, Infinity, unpaired surrogates, NUL or repeated keys, and no integers
beyond 64 bits; limits on size and depth.

All checks work on the bytes, in linear time and in C, because they block the event loop.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import accumulate
from typing import Any

import orjson
from fastapi import Request, Response
from starlette.exceptions import HTTPException

from api.http import unknown_fields
from api.http.typed_route import TypedRoute
from pipeline.domain.errors import InvalidInput

# A batch of 1,000 memories with ten keys of metadata each has 15,000.
MOST_VALUES = 20_000
DEEPEST = 64

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
_STARTS = (b",", b"[", b"{")
_LEVEL = bytes(1 if code in b"[{" else 2 for code in range(256))
# An integer beyond 64 bits has at least 19 digits. Each digit is searched as 1, because a pattern
# of digits takes ten times as long.
_ONES = bytes(ord("1") if chr(code) in "0123456789" else code for code in range(256))
_LONG = b"1" * 19
_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")
_LEAST, _MOST = -(2**63), 2**64 - 1
# Stands for an integer that would be rounded.
_ROUNDED = object()
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_STEP = {1: 1, 2: -1}


class StrictRequest(Request):
    """A request whose JSON is checked against the limits."""

    async def json(self) -> Any:
        """The parsed body. Errors: HTTPException 400."""
        try:
            return read(await self.body())
        except InvalidInput as error:
            # FastAPI replaces the text of any other exception.
            raise HTTPException(400, str(error)) from None

    async def checked_body(self) -> bytes:
        """The body, which is JSON within the limits. Errors: HTTPException 400."""
        try:
            await self.json()
        except orjson.JSONDecodeError as error:
            raise HTTPException(400, f"The body is not valid JSON: {error.msg}.") from None
        return await self.body()


class StrictJson(TypedRoute):
    """Route class that parses bodies strictly, and names ignored keys in a response header."""

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
    """Parse a JSON text. Errors: InvalidInput if it exceeds a limit, JSONDecodeError."""
    if b"\\u0000" in body and _NUL.search(body):
        raise InvalidInput("The body holds a NUL character (\\u0000); remove it.")
    if sum(map(body.count, _STARTS)) > MOST_VALUES or body.count(b"[") + body.count(b"{") > DEEPEST:
        _bound(_STRING.sub(b"", body))
    value = orjson.loads(body)
    _require_distinct_keys(body, value)
    if _LONG in body.translate(_ONES):
        _require_exact_integers(body)
    return value


def _require_exact_integers(body: bytes) -> None:
    """Refuse integers beyond 64 bits, which the parser would round. Errors: InvalidInput."""
    if all(map(_is_exact, _INTEGER.findall(_STRING.sub(b'""', body)))):
        return
    json.loads(body, parse_int=_exact, object_pairs_hook=_with_exact_integers)
    raise InvalidInput("The body has a number beyond 64 bits; send it as a string.")


def _is_exact(digits: bytes | str) -> bool:
    # A long text of digits takes quadratic time to convert.
    return len(digits) <= 20 and _LEAST <= int(digits) <= _MOST


def _exact(digits: str) -> object:
    return 0 if _is_exact(digits) else _ROUNDED


def _with_exact_integers(pairs: list[tuple[str, Any]]) -> int:
    """Refuse an object with a number that `_exact` has replaced. Errors: InvalidInput."""
    for name, value in pairs:
        rest = [value]
        while rest:
            part = rest.pop()
            if part is _ROUNDED:
                raise InvalidInput(
                    f"The number of the key {name[:50]!r} is beyond 64 bits and would be rounded;"
                    " send it as a string."
                )
            if isinstance(part, list):
                rest.extend(part)
    return 0


def _require_distinct_keys(body: bytes, value: Any) -> None:
    """Refuse an object that has a key twice: parsers differ in which of its values counts.

    The parsed value then has fewer keys than the text has colons outside of strings. Errors:
    InvalidInput.
    """
    keys = _keys(value)
    if body.count(b":") > keys and _STRING.sub(b"", body).count(b":") > keys:
        json.loads(body, object_pairs_hook=_distinct)


def _keys(value: Any) -> int:
    """Number of keys in all objects of a value."""
    count, rest = 0, [value]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            count += len(part)
            rest.extend(part.values())
        elif isinstance(part, list):
            rest.extend(part)
    return count


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    names = Counter(name for name, _ in pairs)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise InvalidInput(f"The body gives the key {repeated[0][:50]!r} twice; keep one of them.")


def _bound(structure: bytes) -> None:
    """Check values and depth of a JSON text without its strings. Errors: InvalidInput."""
    values = sum(map(structure.count, _STARTS))
    if values > MOST_VALUES:
        raise InvalidInput(
            f"The body holds more than {MOST_VALUES:,} values; send it in several requests."
        )
    brackets = structure.translate(_LEVEL, _NOT_BRACKETS)
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > DEEPEST:
        raise InvalidInput(f"The body nests deeper than {DEEPEST} levels; flatten it.")
