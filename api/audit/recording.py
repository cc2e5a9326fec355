"""The audit log at the edge: an entry for each request that may change something, adds excepted.

The check of the key's rights begins the entry (`begin`), a route can name the row that it made
(`about`), and the middleware adds the status before the response is sent.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from uuid import UUID

import structlog
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.audit import AuditLog

log = structlog.get_logger()

# Parameters of paths that name a tenant, and no row of it.
TENANTS = ("project_id", "org_id")


@dataclass(slots=True)
class AuditNote:
    """The entry of the request in progress; empty until the rights are checked."""

    store: AuditLog | None = None
    project_id: ProjectId | None = None
    entry_id: int = 0
    target: UUID | None = None


_note: ContextVar[AuditNote | None] = ContextVar("audit_note", default=None)


async def begin(request: Request, store: AuditLog, grant: Grant, project_id: ProjectId) -> None:
    """Write the entry of a request, once. Errors: LedgerUnavailable; then nothing is changed."""
    note = _note.get()
    if note is None or note.store is not None:
        return
    path = getattr(request.scope.get("route"), "path", request.url.path)
    target = _named(request)
    action = f"{request.method} {path.replace(':path', '')}"
    note.entry_id = await store.begin(project_id, grant, action, target)
    note.target = target
    note.store, note.project_id = store, project_id


def about(row_id: UUID) -> None:
    """Name the row that the request has made."""
    if note := _note.get():
        note.target = row_id


def _named(request: Request) -> UUID | None:
    """The first id in the path that is no tenant's; ids of users are not recorded."""
    for name, value in request.path_params.items():
        if name not in TENANTS:
            try:
                return UUID(str(value))
            except ValueError:
                continue
    return None


class Audited:
    """Middleware that adds the status of the response to the entry of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request; complete its entry when the response begins."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return await self._app(scope, receive, send)
        note = AuditNote()
        token = _note.set(note)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                await _end(note, message["status"])
            await send(message)

        try:
            return await self._app(scope, receive, noting)
        finally:
            _note.reset(token)


async def _end(note: AuditNote, status: int) -> None:
    """Complete the entry. If the ledger does not answer, it stays without a status.

    An id that was not found is no row of the project, so it is removed.
    """
    if note.store is None or note.project_id is None:
        return
    try:
        target = None if status == HTTPStatus.NOT_FOUND else note.target
        await note.store.end(note.project_id, note.entry_id, status, target)
    except LedgerUnavailable as error:
        log.warning("audit_status_lost", entry=note.entry_id, error=type(error).__name__)
