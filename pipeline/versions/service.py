"""Restore of a memory to an earlier version. Reads go directly to the stores."""

from __future__ import annotations

from uuid import UUID

from pipeline.domain.memories import Memory
from pipeline.domain.tenants import ProjectId
from pipeline.memories.service import project
from pipeline.ports import Embedder
from pipeline.vector_index.index import VectorIndex
from pipeline.versions.restore import Restore


async def restore(
    project_id: ProjectId,
    memory_id: UUID,
    version: int,
    *,
    reason: str | None,
    restores: Restore,
    embedder: Embedder,
    index: VectorIndex,
    key_id: UUID | None = None,
) -> Memory:
    """Restore a memory to a version, as a new version with the reason. Returns its new state.

    `key_id`: the caller's API key. Errors: those of `Restore.restore`; ModelUnavailable if the text
    cannot be embedded.
    """
    text = await restores.text(project_id, memory_id, version)
    [vector] = await embedder.embed([text])
    memory = await restores.restore(
        project_id,
        memory_id,
        version,
        reason=reason,
        vector=vector,
        embedder=embedder.name,
        key_id=key_id,
    )
    await project([memory_id], index)
    return memory
