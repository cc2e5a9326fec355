"""Changes of up to 1,000 memories in one transaction."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth.tenant import Caller
from api.http.shared_responses import DoneJson
from api.http.strict_json import StrictJson
from api.memories.requests import BatchDeleteRequest, BatchUpdateRequest
from pipeline.memories import service as memories
from pipeline.memories.editing import MemoryEdit

router = APIRouter(tags=["memories"], route_class=StrictJson)


@router.put("/v1/batch/")
async def update(request: BatchUpdateRequest, call: Caller) -> DoneJson:
    """Change several memories in one transaction."""
    stores = call.api.stores
    edits = [
        MemoryEdit(edit.memory_id, edit.values(), version=edit.version) for edit in request.memories
    ]
    if edits:
        await memories.edit(
            call.project.id,
            edits,
            editing=stores.ledger.editing,
            embedder=stores.embedder,
            index=stores.index,
            key_id=call.grant.key_id,
        )
    return {"message": f"Successfully updated {len(edits)} memories"}


@router.delete("/v1/batch/")
async def delete(request: BatchDeleteRequest, call: Caller) -> DoneJson:
    """Delete several memories in one transaction."""
    ids, stores = request.ids(), call.api.stores
    if ids:
        await memories.retire(
            call.project.id,
            ids,
            editing=stores.ledger.editing,
            index=stores.index,
            key_id=call.grant.key_id,
        )
    return {"message": f"Successfully deleted {len(ids)} memories"}
