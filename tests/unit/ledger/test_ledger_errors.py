"""API errors when the ledger does not answer: they claim no outcome that is not known."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from starlette.requests import Request

from api.errors import LEDGER_DOWN, LEDGER_SLOW, OUTCOME_UNKNOWN, ledger_down
from pipeline.ledger.failures import LedgerUnavailable, translated

LOST = LedgerUnavailable(ConnectionResetError())
REFUSED = LedgerUnavailable(ValueError(), reached=True)
CONTENT = DBAPIError(None, None, ValueError())
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
        pytest.param("POST", CONTENT, LEDGER_DOWN, id="refused-for-its-content"),
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


def _driver_error(state: str) -> Exception:
    error = Exception()
    error.sqlstate = state  # type: ignore[attr-defined]
    return error


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
