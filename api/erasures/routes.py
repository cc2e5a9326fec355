"""Erasures: erase a user, agent, app or run everywhere, and show the receipt."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter

from api.audit import recording as audit
from api.auth.tenant import Caller
from api.auth.users import OfUser, UserDeleting
from api.erasures import responses as erasure_responses
from api.erasures.requests import ErasureRequest
from api.erasures.responses import ErasingJson, ErasureReceiptJson
from api.http.strict_json import StrictJson
from pipeline.domain.errors import Forbidden
from pipeline.domain.events import Status
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey

router = APIRouter(tags=["erasure"], route_class=StrictJson)


@router.post("/v1/erasures/")
async def erase(request: ErasureRequest, call: UserDeleting, user: OfUser = None) -> ErasingJson:
    """Erase every scope with the id: memories with their history, messages, receipts, graph,
    vectors and bodies of webhook deliveries. This cannot be undone.

    After the response none of it can be read. The event is SUCCEEDED seconds later, when the
    vectors are deleted too. A user's token erases its user, and ends with that.
    """
    if user is not None and request.owner() != OwnerKey("user", user):
        raise Forbidden("A user's token erases only its own user: give that user_id alone.")
    event_id = await erasure.erase(call.project.id, request.owner(), erasures=call.ledger.erasures)
    audit.about(event_id)
    call.api.keys.forget()  # the user's tokens have ended
    done = "Erased; vectors follow."
    return {"message": done, "event_id": str(event_id), "status": Status.RUNNING}


@router.get("/v1/erasures/{event_id}/")
async def receipt(event_id: UUID, call: Caller) -> ErasureReceiptJson:
    """Number of erased rows by store; SUCCEEDED once all are deleted."""
    return erasure_responses.receipt(await call.ledger.erasures.receipt(call.project.id, event_id))
