"""Error responses. All have the body `{"error", "detail", "message", "code"}`, all strings.

`error`, `detail` and `message` are the same text, which says what to change, because each official
client reads another one of them. A 400 repeats the text in `{"details": {"message": …}}`.
"""

from __future__ import annotations

import uuid
from http import HTTPStatus
from typing import Any, get_args

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from api.http.nearest_route import no_such_route, wrong_method
from api.refusals import Handler, Refusals
from pipeline.domain.errors import (
    Conflict,
    Forbidden,
    MemlaneError,
    NotFound,
    Overloaded,
    PermanentError,
    ProjectGone,
    TransientError,
)
from pipeline.domain.events import FailureCode
from pipeline.ledger.failures import (
    CONCURRENT,
    DISK_FULL,
    READ_ONLY,
    LedgerUnavailable,
    StatementRefused,
    ValueRefused,
    broken_constraint,
    sqlstate,
)

log = structlog.get_logger()

CODES = {400: FailureCode.INVALID_INPUT, 500: FailureCode.INTERNAL}
OUTCOME_UNKNOWN = (
    "The connection to the ledger was lost before it answered: this request may or may not have "
    "been accepted. Send an add with an Idempotency-Key to repeat it safely."
)
LEDGER_DOWN = "The ledger is out of reach; nothing was accepted. Try again shortly."
# A ledger that answers reads and refuses writes.
WRITES_REFUSED = {
    DISK_FULL: "The disk of the ledger is full; nothing was written. Its operator must free space.",
    READ_ONLY: "The ledger is read-only, like a standby; nothing was written. Its operator must "
    "connect Memlane to the primary server.",
}
CHANGED_MEANWHILE = "Another request changed the same rows at the same time. Repeat this one."
# The code of a 500: PostgreSQL refuses a statement that the API made, and a retry does not help.
LEDGER_REFUSED = "LEDGER_REFUSED"
LEDGER_SLOW = (
    "This request took too long in the ledger and was ended; nothing was changed. Ask for less, "
    "with a narrower filter or a smaller page, or try again later."
)


class Unauthorized(MemlaneError):
    """The request has no API key, or one that is not valid."""


def respond(status: int, message: str, *, code: str | None = None, **headers: str) -> JSONResponse:
    """An error response. `code`: a failure code of events, by default the name of the status."""
    named = code or CODES.get(status) or HTTPStatus(status).name
    body: dict[str, Any] = {"error": message, "detail": message, "message": message, "code": named}
    if status == 400:  # the Mem0 Platform has the reason of a bad request here
        body["details"] = {"message": message}
    return JSONResponse(body, status, headers=headers or None)


async def unauthorized(_: Request, error: Exception) -> JSONResponse:
    """Answer 401."""
    return respond(401, str(error), **{"WWW-Authenticate": "Token"})


def with_status(status: int) -> Handler:
    """A handler that answers with this status, the text of the error, and the code that it has."""

    async def handle(_: Request, error: Exception) -> JSONResponse:
        return respond(status, str(error), code=getattr(error, "code", None))

    return handle


async def unreadable(request: Request, error: Exception) -> JSONResponse:
    """Answer 400 with the fields that failed validation, or with the expected content type."""
    assert isinstance(error, RequestValidationError)
    expected = _expected(request)
    if any(_unparsed(fault) for fault in error.errors()[:1]):
        sent = request.headers.get("content-type", "")[:100]
        message = (
            f"Send {expected}, with the header Content-Type: application/json. "
            f"This request says {sent!r}."
        )
        return respond(400, message)
    return respond(400, "; ".join(_described(fault, expected) for fault in error.errors()[:5]))


async def http(request: Request, error: Exception) -> JSONResponse:
    """Answer an HTTPException with its status and headers; name the nearest route if none fits."""
    assert isinstance(error, HTTPException)
    text = str(error.detail)
    if text == HTTPStatus.NOT_FOUND.phrase:
        text = no_such_route(request)
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        text = wrong_method(request)
    return respond(error.status_code, text, **(error.headers or {}))


async def unavailable(_: Request, error: Exception) -> JSONResponse:
    """Answer 503 with `Retry-After`: a store or model is unavailable."""
    assert isinstance(error, TransientError)
    return respond(503, str(error), code=error.code, **{"Retry-After": "5"})


async def unstorable(_: Request, error: Exception) -> JSONResponse:
    """Answer 400: the ledger rejects a value that the schemas accept."""
    log.error("value_refused", error=type(getattr(error, "orig", error)).__name__)
    return respond(400, "A value in this request is out of the range that can be stored.")


async def overloaded(_: Request, error: Exception) -> JSONResponse:
    """Answer 429 for too much load of the caller, 503 for the server's; with `Retry-After`."""
    assert isinstance(error, Overloaded)
    message = f"{error} Nothing was accepted; try again in {error.retry_after_s} s."
    return respond(
        503 if error.server_wide else 429, message, **{"Retry-After": str(error.retry_after_s)}
    )


async def ledger_down(request: Request, error: Exception) -> JSONResponse:
    """Answer 503. The text says if a write may have been committed nevertheless."""
    log.error("ledger_error", error=type(getattr(error, "orig", error)).__name__)
    written = request.method not in ("GET", "HEAD")
    message = LEDGER_DOWN
    if isinstance(error, LedgerUnavailable) and error.out_of_time:
        message = LEDGER_SLOW
    elif isinstance(error, LedgerUnavailable) and error.refuses_writes:
        message = WRITES_REFUSED[error.refuses_writes]
    elif isinstance(error, LedgerUnavailable) and written and error.may_have_committed:
        message = OUTCOME_UNKNOWN
    return respond(503, message, **{"Retry-After": "2"})


async def statement_refused(request: Request, error: Exception) -> JSONResponse:
    """Answer 503 if another request changed the same rows, else 500 with a request id.

    The log has no stack trace: the driver's text quotes the values of the row.
    """
    assert isinstance(error, StatementRefused)
    state = sqlstate(error)
    if state in CONCURRENT:
        log.warning("ledger_concurrent_change", sqlstate=state, constraint=broken_constraint(error))
        return respond(503, CHANGED_MEANWHILE, **{"Retry-After": "2"})
    if state.startswith("22"):  # the driver's form of ValueRefused within a transaction
        return await unstorable(request, error)
    request_id = uuid.uuid4().hex
    log.error(
        "ledger_refused",
        request_id=request_id,
        sqlstate=state,
        constraint=broken_constraint(error),
        error=type(error.orig).__name__,
        route=getattr(request.scope.get("route"), "path", "unknown"),
    )
    text = f"Internal error (SQLSTATE {state}). Quote request id {request_id}."
    return respond(500, text, code=LEDGER_REFUSED)


async def unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer 500 with a request id, and log the exception with it.

    The log has the route and not the path, which may hold the id of a user or the token of a link.
    """
    request_id = uuid.uuid4().hex
    route = getattr(request.scope.get("route"), "path", "unknown")
    log.error(
        "request_crashed", request_id=request_id, method=request.method, route=route, exc_info=error
    )
    # The server closes the connection after a crashed request, and must announce that.
    return respond(500, f"Internal error. Quote request id {request_id}.", Connection="close")


_HANDLERS: dict[type[Exception], Handler] = {
    Unauthorized: unauthorized,
    ProjectGone: unauthorized,
    PermanentError: with_status(400),  # InvalidInput, and a text that a model refuses
    RequestValidationError: unreadable,
    Forbidden: with_status(403),
    NotFound: with_status(404),
    Conflict: with_status(409),
    HTTPException: http,
    Overloaded: overloaded,
    TransientError: unavailable,
    ValueRefused: unstorable,
    StatementRefused: statement_refused,
    LedgerUnavailable: ledger_down,
    Exception: unexpected,
}
_refusals = Refusals()
HANDLERS: dict[int | type[Exception], Handler] = {
    error: _refusals.logged(handler) for error, handler in _HANDLERS.items()
}


def _unparsed(error: dict[str, Any]) -> bool:
    """True if the body was not parsed as JSON: FastAPI then passes bytes."""
    return error["loc"] == ("body",) and isinstance(error.get("input"), bytes)


def _expected(request: Request) -> str:
    """The body that a route takes, in words: a JSON object and its required keys."""
    body = getattr(request.scope.get("route"), "body_field", None)
    annotation = body.field_info.annotation if body is not None else None
    for model in (annotation, *get_args(annotation)):
        if isinstance(model, type) and issubclass(model, BaseModel):
            fields = model.model_fields.items()
            names = [f"`{field.alias or name}`" for name, field in fields if field.is_required()]
            return "a JSON object" + (f" with {' and '.join(names)}" if names else "")
    return "a JSON object"


def _described(error: dict[str, Any], expected: str) -> str:
    """Text of one validation error: the field and the fault. `expected`: the body in words."""
    if error["type"] == "json_invalid":
        reason = error.get("ctx", {}).get("error", "unreadable")
        return f"The body is not valid JSON: {reason}. Send {expected}."
    if error["loc"] == ("body",) and error["type"] == "missing":
        return f"The body is missing; send {expected}."
    place = [str(part) for part in error["loc"][1:]]  # the first part is body, query or path
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{'.'.join(place)}: {message}" if place else message
