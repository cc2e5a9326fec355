"""API errors when the ledger does not answer: they claim no outcome that is not known."""

from __future__ import annotations

import orjson
import pytest
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from starlette.requests import Request
from structlog.testing import capture_logs

from api.errors import (
    CHANGED_MEANWHILE,
    LEDGER_DOWN,
    LEDGER_REFUSED,
    LEDGER_SLOW,
    OUTCOME_UNKNOWN,
    ledger_down,
    statement_refused,
)
from pipeline.ledger.failures import LedgerUnavailable, translated

LOST = LedgerUnavailable(ConnectionResetError())
REFUSED = LedgerUnavailable(ValueError(), reached=True)
TIMED_OUT = LedgerUnavailable(
    type("Cancelled", (Exception,), {"sqlstate": "57014"})(), reached=True
)
UNREACHABLE = LedgerUnavailable(ConnectionRefusedError(), sent=False)


@pytest.mark.parametrize(
    ("method", "error", "message"),
    [
        pytest.param("POST", LOST, OUTCOME_UNKNOWN, id="lost-in-a-write"),
        pytest.param("POST", LedgerUnavailable(TimeoutError()), OUTCOME_UNKNOWN, id="silent"),
        pytest.param("POST", UNREACHABLE, LEDGER_DOWN, id="never-sent"),
        pytest.param("POST", REFUSED, LEDGER_DOWN, id="refused"),
        pytest.param("GET", LOST, LEDGER_DOWN, id="lost-in-a-read"),
        pytest.param("GET", TIMED_OUT, LEDGER_SLOW, id="ended-at-a-time-limit"),
        pytest.param("POST", TIMED_OUT, LEDGER_SLOW, id="write-ended-at-a-time-limit"),
    ],
)
async def test_the_report_on_a_ledger_that_did_not_answer(
    method: str, error: Exception, message: str
) -> None:
    answer = await ledger_down(Request({"type": "http", "method": method}), error)
    assert answer.status_code == 503
    assert message.encode() in bytes(answer.body)


def _driver_error(state: str, message: str = "") -> Exception:
    error = Exception(message)
    error.sqlstate = state  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("state", ["23503", "23505", "23P01"])
async def test_a_row_that_another_request_changed_is_worth_another_try(state: str) -> None:
    request = Request({"type": "http", "method": "PUT", "path": "/"})
    answer = await statement_refused(request, IntegrityError(None, None, _driver_error(state)))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert CHANGED_MEANWHILE.encode() in bytes(answer.body)


@pytest.mark.parametrize("state", ["23502", "23514", "54000", "54001"])
async def test_a_statement_refused_for_its_content_is_a_defect(state: str) -> None:
    """No retry helps: on a 503 the outbox of a client sends nothing else."""
    request = Request({"type": "http", "method": "POST", "path": "/"})
    secret = "my diagnosis is private"
    error = _driver_error(state, secret)
    with capture_logs() as lines:
        answer = await statement_refused(request, DBAPIError(None, None, error))
    assert answer.status_code == 500
    assert orjson.loads(bytes(answer.body))["code"] == LEDGER_REFUSED
    [line] = lines
    assert (line["event"], line["sqlstate"]) == ("ledger_refused", state)
    assert line["request_id"] in bytes(answer.body).decode()
    assert secret not in str(line) + bytes(answer.body).decode()


@pytest.mark.parametrize("state", ["40P01", "53100", "25006", "57014", "55P03", "42P01"])
def test_a_refusal_for_another_reason_than_the_content_can_be_tried_again(state: str) -> None:
    error = translated(DBAPIError(None, None, _driver_error(state)))
    assert isinstance(error, LedgerUnavailable)
    assert error.reached
    assert not error.may_have_committed


@pytest.mark.parametrize(
    "error",
    [
        DBAPIError(None, None, _driver_error("54000")),
        DataError(None, None, ValueError()),
        IntegrityError(None, None, _driver_error("23505")),
    ],
)
def test_a_refusal_for_the_content_stays_as_it_is(error: DBAPIError) -> None:
    assert translated(error) is error


def test_a_lost_connection_is_unavailable_with_any_error() -> None:
    lost = DataError(None, None, ValueError(), connection_invalidated=True)
    error = translated(lost)
    assert isinstance(error, LedgerUnavailable)
    assert not error.reached
