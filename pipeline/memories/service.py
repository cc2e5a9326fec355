"""Edits and deletions of memories by users. Reads go directly to the stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.memories.delete_by_filter import DeleteByFilter, DeleteRequest
from pipeline.memories.editing import MemoryEdit, MemoryEditing
from pipeline.ports import Dispatcher, Embedder
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

# Maximum number of vectors deleted within the request; the sweeper deletes the rest. Reads check
# the ledger, so they never return a memory that is left in the index only.
AT_ONCE = 500


async def edit(
    project_id: ProjectId,
    edits: Sequence[MemoryEdit],
    *,
    editing: MemoryEditing,
    embedder: Embedder,
    index: VectorIndex,
    key_id: UUID | None = None,
) -> list[Memory]:
    """Change memories, all or none. Returns their new states, in order.

    `key_id`: the caller's API key. Errors: those of `MemoryEditing.edit`; ModelUnavailable if a new
    text cannot be embedded.
    """
    texts = [edit.values["text"] for edit in edits if "text" in edit.values]
    vectors = iter(await embedder.embed(texts) if texts else ())
    with_vectors = [
        replace(edit, vector=next(vectors)) if "text" in edit.values else edit for edit in edits
    ]
    memories = await editing.edit(project_id, with_vectors, embedder=embedder.name, key_id=key_id)
    await project([memory.id for memory in memories], index)
    return memories


async def retire(
    project_id: ProjectId,
    memory_ids: Sequence[UUID],
    *,
    editing: MemoryEditing,
    index: VectorIndex,
    key_id: UUID | None = None,
) -> None:
    """Delete memories, all or none; their history stays. Errors: NotFound."""
    await editing.retire(project_id, memory_ids, key_id=key_id)
    await project(memory_ids, index)


async def clear(
    project_id: ProjectId,
    request: DeleteRequest,
    *,
    clearing: DeleteByFilter,
    index: VectorIndex,
    dispatcher: Dispatcher,
) -> UUID:
    """Delete all memories that match. Returns the id of the event, which has succeeded."""
    cleared = await clearing.clear(project_id, request)
    log.info("memories_cleared", event_id=str(cleared.event_id), count=len(cleared.memory_ids))
    for hint in cleared.hints:
        dispatcher.kick(hint, project_id)
    await project(cleared.memory_ids[:AT_ONCE], index)
    return cleared.event_id


async def project(
    memory_ids: Sequence[UUID], index: VectorIndex, *, event_id: UUID | None = None
) -> None:
    """Update the vector index. If it is down, the sweeper does it later; reads use the ledger.

    `event_id`: the event that changed the memories, for the log.
    """
    try:
        await index.catch_up(memory_ids)
    except StoreUnavailable:
        about = {"event_id": str(event_id)} if event_id else {"count": len(memory_ids)}
        log.warning("projection_pending", **about)
