"""What people do with single memories: edit and delete. Reads go straight to the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog

from pipeline.errors import StoreUnavailable
from pipeline.ledger.changes import Memory
from pipeline.ledger.memories import Memories
from pipeline.ports import Embedder
from pipeline.vectors import VectorIndex

log = structlog.get_logger()


async def edit(
    project_id: UUID,
    memory_id: UUID,
    values: Mapping[str, Any],
    *,
    memories: Memories,
    embedder: Embedder,
    index: VectorIndex,
) -> Memory:
    """Change text, metadata, valid_from or expiration_date; the old state goes to the history."""
    vector = (await embedder.embed([values["text"]]))[0] if "text" in values else None
    memory = await memories.edit(
        project_id, memory_id, values=values, vector=vector, embedder=embedder.name
    )
    await _project(memory_id, index)
    return memory


async def retire(
    project_id: UUID, memory_id: UUID, *, memories: Memories, index: VectorIndex
) -> None:
    await memories.retire(project_id, memory_id)
    await _project(memory_id, index)


async def _project(memory_id: UUID, index: VectorIndex) -> None:
    """The ledger has it and every read asks the ledger: an index that is down may follow later."""
    try:
        await index.catch_up([memory_id])
    except StoreUnavailable:
        log.warning("projection_owed", memory_id=str(memory_id))
