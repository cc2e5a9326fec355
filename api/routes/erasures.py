"""Erasures: forget a user, agent, app or run everywhere, and show the receipt."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict

from api.dependencies import Caller, Given
from api.http.strict_json import StrictJson
from api.schemas import EntityId, OwnRequest
from pipeline.domain.errors import InvalidInput
from pipeline.erasure import service as erasure
from pipeline.erasure.store import ErasureReceipt, Whose

router = APIRouter(tags=["erasure"], route_class=StrictJson)

KINDS = ("user", "agent", "app", "run")


class ErasureRequest(OwnRequest):
    """Whom to forget: exactly one id."""

    model_config = ConfigDict(json_schema_extra={"example": {"user_id": "maya"}})

    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None

    def whose(self) -> Whose:
        named = [Whose(kind, one) for kind in KINDS if (one := getattr(self, f"{kind}_id"))]
        if len(named) != 1:
            raise InvalidInput("Give exactly one of user_id, agent_id, app_id, run_id.")
        return named[0]


@router.post("/v1/erasures/")
async def erase(request: ErasureRequest, api: Given, project: Caller) -> dict[str, Any]:
    """Erase every scope that carries the id: memories with their history, what was said, receipts,
    graph, vectors and webhooks' bodies. There is no undo.

    By the time it answers, nothing of it can be read any more. The event is SUCCEEDED, seconds
    later, when the vectors are gone as well.
    """
    event_id = await erasure.erase(project.id, request.whose(), erasures=api.stores.ledger.erasures)
    return {"message": "Erased; vectors follow.", "event_id": str(event_id), "status": "RUNNING"}


@router.get("/v1/erasures/{event_id}/")
async def receipt(event_id: UUID, api: Given, project: Caller) -> dict[str, Any]:
    """How much there was, by store, and whether all of it is gone."""
    return shape(await api.stores.ledger.erasures.receipt(project.id, event_id))


def shape(found: ErasureReceipt) -> dict[str, Any]:
    return {
        "event_id": str(found.event_id),
        "entity_type": found.kind,
        "status": found.status,
        "erased": found.counts,
        "created_at": found.created_at,
        "completed_at": found.completed_at,
    }
