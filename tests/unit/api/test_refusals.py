"""Log lines of refused requests: what they say, and how many there are."""

from __future__ import annotations

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request
from structlog.testing import capture_logs

from api import errors
from api.refusals import MOST_LINES, Refusals
from pipeline.domain.errors import InvalidInput

SECRET = "my diagnosis is private"
router = APIRouter()


@router.get("/v1/things/{thing}/")
async def read(thing: str, request: Request) -> str:
    request.state.project_id = "p1"
    raise InvalidInput(f"{SECRET}: {thing}")


def client(now: list[float]) -> httpx.AsyncClient:
    refusals = Refusals(clock=lambda: now[0])
    app = FastAPI()
    app.include_router(router)
    app.add_exception_handler(InvalidInput, refusals.logged(errors.with_status(400)))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://memlane")


async def test_a_refused_request_is_logged_without_its_text() -> None:
    with capture_logs() as lines:
        async with client([0.0]) as http:
            assert (await http.get(f"/v1/things/{SECRET}/")).status_code == 400
    assert lines == [
        {
            "event": "request_refused", "log_level": "info", "method": "GET",
            "route": "/v1/things/{thing}/", "status": 400, "code": "INVALID_INPUT",
            "error": "InvalidInput", "project_id": "p1",
        }
    ]  # fmt: skip


async def test_a_crash_is_logged_without_the_path() -> None:
    """It may hold the id of a user, or the token of a one-time link to the console."""
    app = FastAPI()
    app.include_router(router)
    app.add_exception_handler(InvalidInput, errors.unexpected)
    transport = httpx.ASGITransport(app)
    with capture_logs() as lines:
        async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as http:
            assert (await http.get(f"/v1/things/{SECRET}/")).status_code == 500
    [line] = lines
    assert (line["event"], line["route"]) == ("request_crashed", "/v1/things/{thing}/")
    assert SECRET not in str({**line, "exc_info": None})


async def test_the_lines_of_a_second_are_bounded_and_the_rest_is_counted() -> None:
    now = [0.0]
    with capture_logs() as lines:
        async with client(now) as http:
            for _ in range(MOST_LINES + 5):
                await http.get("/v1/things/x/")
            assert len(lines) == MOST_LINES
            now[0] = 1.5
            await http.get("/v1/things/x/")
    assert len(lines) == MOST_LINES + 1
    assert lines[-1]["left_out"] == 5


@pytest.mark.parametrize("error", list(errors.HANDLERS))
def test_every_handler_logs_refusals(error: type[Exception]) -> None:
    assert "Refusals.logged" in errors.HANDLERS[error].__qualname__
