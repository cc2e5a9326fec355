"""API errors when the ledger does not answer: they claim no outcome that is not known."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request

from api.errors import LEDGER_DOWN, OUTCOME_UNKNOWN, ledger_down
from pipeline.ledger.failures import Unreachable

LOST = DBAPIError(None, None, ConnectionResetError(), connection_invalidated=True)
REFUSED = DBAPIError(None, None, ValueError())
UNREACHABLE = Unreachable(None, None, ConnectionResetError(), connection_invalidated=True)


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        pytest.param("POST", LOST, OUTCOME_UNKNOWN, id="lost-in-a-write"),
        pytest.param("POST", TimeoutError(), OUTCOME_UNKNOWN, id="silent-in-a-write"),
        pytest.param("POST", UNREACHABLE, LEDGER_DOWN, id="never-sent"),
        pytest.param("POST", ConnectionRefusedError(), LEDGER_DOWN, id="nobody-listens"),
        pytest.param("POST", REFUSED, LEDGER_DOWN, id="refused"),
        pytest.param("GET", LOST, LEDGER_DOWN, id="lost-in-a-read"),
    ],
)
async def test_what_is_said_of_a_ledger_that_did_not_answer(
    method: str, error: Exception, message: str
) -> None:
    answer = await ledger_down(Request({"type": "http", "method": method}), error)
    assert answer.status_code == 503
    assert message.encode() in bytes(answer.body)
