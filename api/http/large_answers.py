"""Large answers: built and written as JSON beside the event loop, row by row.

A page of 4 MB takes 0.1 to 0.3 s of CPU, which would delay every other request of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar, cast

from fastapi import Response
from pydantic import TypeAdapter

from pipeline.cpu_thread import beside_loop

# Sizes up to which an answer is built on the event loop: values and characters, a few ms each.
INLINE_ROWS, INLINE_CHARACTERS = 100, 100_000
MEDIA_TYPE = "application/json"
_JSON: TypeAdapter[Any] = TypeAdapter(Any)

T = TypeVar("T")


async def answer(build: Callable[[], T], rows: int, characters: int = 0) -> T:
    """The result of `build()` for an answer of about this size; a large one as a Response.

    FastAPI sends a Response as it is; its JSON is that of a small one. Errors: those of `build`.
    """
    if rows <= INLINE_ROWS and characters <= INLINE_CHARACTERS:
        return build()
    whole = await beside_loop(lambda: Response(b"".join(_json(build())), media_type=MEDIA_TYPE))
    return cast("T", whole)


def _json(value: Any) -> Iterator[bytes]:
    """JSON in pieces: one call of C code for each row, because each holds the GIL."""
    if isinstance(value, dict):
        yield b"{"
        for place, (name, part) in enumerate(value.items()):
            yield (b"," if place else b"") + _JSON.dump_json(name) + b":"
            yield from _rows(part) if isinstance(part, list) else [_JSON.dump_json(part)]
        yield b"}"
    elif isinstance(value, list):
        yield from _rows(value)
    else:
        yield _JSON.dump_json(value)


def _rows(rows: Collection[Any]) -> Iterator[bytes]:
    yield b"["
    for place, row in enumerate(rows):
        yield (b"," if place else b"") + _JSON.dump_json(row)
    yield b"]"
