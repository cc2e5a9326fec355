"""Resolution of conflicts by people."""

from __future__ import annotations

from uuid import UUID

import structlog

from pipeline.conflicts.store import Conflicts, Resolution, ResolveRequest
from pipeline.domain.tenants import ProjectId
from pipeline.memories.service import project
from pipeline.ports import Embedder
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()


async def resolve(
    project_id: ProjectId,
    conflict_id: UUID,
    *,
    keep: UUID | None = None,
    text: str | None = None,
    conflicts: Conflicts,
    embedder: Embedder,
    index: VectorIndex,
) -> UUID:
    """Resolve a conflict: `keep` one memory, replace all by a `text`, or, without both, keep all.

    Returns the event. Errors: as `Conflicts.resolve`; ModelUnavailable if the text cannot be
    embedded.
    """
    resolution = Resolution.ONE if keep else Resolution.TEXT if text else Resolution.BOTH
    vectors = await embedder.embed([text]) if text else [None]
    request = ResolveRequest(conflict_id, resolution, embedder.name, keep, text, vectors[0])
    event_id, memory_ids = await conflicts.resolve(project_id, request)
    log.info("conflict_resolved", event_id=str(event_id), resolution=resolution)
    await project(memory_ids, index, event_id=event_id)
    return event_id
