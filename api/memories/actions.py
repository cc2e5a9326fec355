"""Changes of one memory, for both dialects: edit and delete, with an API key or a user's token."""

from __future__ import annotations

from api.auth.users import NamedOwner, require_own
from api.dependencies import ApiCall
from api.http.ids import uuid
from api.memories import responses as memory_responses
from api.memories.requests import NOTHING_TO_CHANGE, UpdateRequest
from api.memories.responses import MemoryJson
from pipeline.domain.errors import Forbidden, InvalidInput
from pipeline.memories import service as memories
from pipeline.memories.editing import MemoryEdit


async def edit_memory(
    memory_id: str, request: UpdateRequest, call: ApiCall, owner: NamedOwner = ()
) -> MemoryJson:
    """Change a memory of the owner. A user's token changes only its text.

    Errors: InvalidInput, Forbidden; NotFound for an unknown memory, or one of another owner;
    ChangedSince for one with another version than that of the request.
    """
    values = request.values()
    if not values:
        raise InvalidInput(NOTHING_TO_CHANGE)
    if call.grant.user is not None and set(values) != {"text"}:
        raise Forbidden("A user's token changes only the text of a memory; send text alone.")
    identity, stores = uuid("memory_id", memory_id), call.api.stores
    await require_own(call, identity, owner)
    [changed] = await memories.edit(
        call.project.id,
        [MemoryEdit(identity, values, version=request.version)],
        editing=stores.ledger.editing,
        embedder=stores.embedder,
        index=stores.index,
        key_id=call.grant.key_id,
    )
    return memory_responses.memory(changed)


async def delete_memory(memory_id: str, call: ApiCall, owner: NamedOwner = ()) -> None:
    """Delete a memory of the owner; its history stays. Errors: as `edit_memory`."""
    identity, stores = uuid("memory_id", memory_id), call.api.stores
    await require_own(call, identity, owner)
    await memories.retire(
        call.project.id,
        [identity],
        editing=stores.ledger.editing,
        index=stores.index,
        key_id=call.grant.key_id,
    )
