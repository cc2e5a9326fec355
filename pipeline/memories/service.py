"""What people do with memories they have: edit and delete. Reads go straight to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog

from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.memories.delete_by_filter import Asked
from pipeline.memories.editing import Edit
from pipeline.memories.ports import MemoryStores
from pipeline.ports import Dispatcher, Embedder
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

# So many vectors follow at once; the sweeper brings the rest, and no read believes them meanwhile.
AT_ONCE = 500


async def edit(
    project_id: ProjectId,
    edits: Sequence[Edit],
    *,
    ledger: MemoryStores,
    embedder: Embedder,
    index: VectorIndex,
) -> list[Memory]:
    """Change text, metadata or times, all or nothing; the old states go to the history."""
    texts = [edit.values["text"] for edit in edits if "text" in edit.values]
    vectors = iter(await embedder.embed(texts) if texts else ())
    with_vectors = [
        replace(edit, vector=next(vectors)) if "text" in edit.values else edit for edit in edits
    ]
    memories = await ledger.editing.edit(project_id, with_vectors, embedder=embedder.name)
    await _project([memory.id for memory in memories], index)
    return memories


async def retire(
    project_id: ProjectId, memory_ids: Sequence[UUID], *, ledger: MemoryStores, index: VectorIndex
) -> None:
    """Delete these memories, all or none; their history stays."""
    await ledger.editing.retire(project_id, memory_ids)
    await _project(memory_ids, index)


async def clear(
    project_id: ProjectId,
    asked: Asked,
    *,
    ledger: MemoryStores,
    index: VectorIndex,
    dispatcher: Dispatcher,
) -> UUID:
    """Delete all that matches. Returns the event that did it; by then it has succeeded."""
    cleared = await ledger.clearing.clear(project_id, asked)
    log.info("memories_cleared", event_id=str(cleared.event_id), count=len(cleared.memory_ids))
    for wake in cleared.wakes:
        dispatcher.kick(wake, project_id)
    await _project(cleared.memory_ids[:AT_ONCE], index)
    return cleared.event_id


async def _project(memory_ids: Sequence[UUID], index: VectorIndex) -> None:
    """The ledger has it and every read asks the ledger: an index that is down may follow later."""
    try:
        await index.catch_up(memory_ids)
    except StoreUnavailable:
        log.warning("projection_owed", count=len(memory_ids))
