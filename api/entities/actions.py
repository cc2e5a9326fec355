"""Erasure of a user, agent, app or run, for both dialects."""

from __future__ import annotations

from api.dependencies import ApiCall
from api.http.shared_responses import StartedJson
from api.memories.responses import IN_PROGRESS
from pipeline.domain.errors import InvalidInput
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.tenants.owners import KINDS


async def erase_entity(entity_type: str, entity_id: str, call: ApiCall) -> StartedJson:
    """Erase everything with this id. Errors: InvalidInput for an unknown type."""
    owner = OwnerKey(kind_of(entity_type), entity_id)
    event_id = await erasure.erase(call.project.id, owner, erasures=call.ledger.erasures)
    return {"message": IN_PROGRESS, "event_id": str(event_id)}


def kind_of(entity_type: str) -> str:
    """The singular of an entity type in a path. Errors: InvalidInput for an unknown type."""
    kind = entity_type.removesuffix("s")
    if kind not in KINDS:
        raise InvalidInput("Invalid entity type")
    return kind
