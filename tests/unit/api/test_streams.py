"""Streams: their number for each project, and an error before the first byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from api.http.streams import LimitedStream, StreamLimit
from pipeline.domain.errors import NotFound, Overloaded
from pipeline.domain.tenants import ProjectId

MINE, OTHER = ProjectId(uuid4()), ProjectId(uuid4())


def test_a_project_has_a_number_of_streams_at_once() -> None:
    limit = StreamLimit(2, "Close one.", retry_after_s=7)
    with limit.place(MINE):
        with limit.place(MINE):
            with pytest.raises(Overloaded, match="Close one") as refused, limit.place(MINE):
                pass
            assert refused.value.retry_after_s == 7
            with limit.place(OTHER):
                pass
        with limit.place(MINE):
            pass


async def test_an_error_of_the_first_piece_comes_before_the_head() -> None:
    limit = StreamLimit(1, "Close one.")

    async def pieces(fails: bool) -> AsyncIterator[bytes]:
        if fails:
            raise NotFound("No such event.")
        yield b"one, "
        yield b"two"

    async def stream(request: Request) -> LimitedStream:
        return LimitedStream(pieces("fails" in request.query_params), place=limit.place(MINE))

    app = Starlette(routes=[Route("/", stream)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        with pytest.raises(NotFound):
            await client.get("/", params={"fails": "1"})
        assert (await client.get("/")).text == "one, two"
