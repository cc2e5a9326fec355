"""Errors of the client.

MemlaneError
├── ApiError              an error response; `status`, `code` and `retry_after_s`
│   ├── Rejected          400, 409, 413, 422: the request must change
│   ├── AccessDenied      401, 403: the API key must change
│   ├── Missing           404: nothing has this id, or no Memlane is at this URL
│   └── Unavailable       429, 5xx and the rest: a retry may help
├── Unreachable           no response
│   └── CircuitOpen       the circuit breaker is open: the request was not sent
├── EventFailed           the event ended as FAILED; `receipt` has the code and the reason
├── NotEnded              the timeout is over before the event has ended (a TimeoutError)
├── OutboxFull            the outbox has reached its bound: nothing was stored
└── OutboxClosed          the client is closed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from memlane_client.receipts import Receipt


class MemlaneError(Exception):
    """Root of the client's errors."""


class ApiError(MemlaneError):
    """An error response of the API. The message is the API's."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """`retry_after_s`: seconds of the Retry-After header."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class Rejected(ApiError):
    """The request is refused and stays refused until it changes.

    From an outbox also with status 500: the server failed at this add alone, at each try.
    """


class AccessDenied(ApiError):
    """The API key is missing, unknown, or has too few rights."""


class Missing(ApiError):
    """Nothing has this id, or the server at this URL is no Memlane."""


class Unavailable(ApiError):
    """The server cannot answer now. A retry may help."""


class Unreachable(MemlaneError):
    """The server did not respond."""


class CircuitOpen(Unreachable):
    """The circuit breaker is open after repeated failures: the request was not sent."""


class EventFailed(MemlaneError):
    """The event ended as FAILED."""

    def __init__(self, receipt: Receipt) -> None:
        """`receipt`: the failed event."""
        super().__init__(f"{receipt.code}: {receipt.error}")
        self.receipt = receipt


class NotEnded(MemlaneError, TimeoutError):
    """The timeout is over and the event has not ended. It goes on."""


class OutboxFull(MemlaneError):
    """The outbox has reached its bound. Nothing was stored."""


class OutboxClosed(MemlaneError):
    """The client is closed. Adds that were not sent stay in the outbox."""


KINDS: dict[int, type[ApiError]] = {
    400: Rejected,
    401: AccessDenied,
    403: AccessDenied,
    404: Missing,
    409: Rejected,
    413: Rejected,
    422: Rejected,
}


def error_of(response: httpx.Response) -> ApiError | None:
    """The error of a response; None for a success."""
    if response.is_success:
        return None
    try:
        body = response.json()
    except ValueError:
        body = None
    fields = body if isinstance(body, dict) else {}
    given, code = fields.get("error") or fields.get("detail"), fields.get("code")
    message = given or response.reason_phrase or "no reason given"
    kind = KINDS.get(response.status_code, Unavailable)
    return kind(
        f"{response.status_code}: {message}",
        status=response.status_code,
        code=code if isinstance(code, str) else None,
        retry_after_s=_seconds(response.headers.get("Retry-After")),
    )


def _seconds(header: str | None) -> float | None:
    """Seconds of a Retry-After header; None for a date, because the clocks may differ."""
    return float(header) if header is not None and header.strip().isdigit() else None
