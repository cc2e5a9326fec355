"""Users' feedback on memories: one opinion per memory, the latest."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from pipeline.domain.errors import NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import feedback, memories


class Feedback(LedgerStore):
    """Store of feedback."""

    async def give(
        self, project_id: ProjectId, memory_id: UUID, opinion: str | None, reason: str | None
    ) -> None:
        """Store an opinion in place of an earlier one; None deletes it. Errors: NotFound."""
        # Locked as the foreign key of the opinion locks it, so that no erasure deletes it between.
        memory = (
            select(memories.c.id)
            .where(
                memories.c.project_id == project_id,
                memories.c.id == memory_id,
                memories.c.state == "ACTIVE",
            )
            .with_for_update(read=True, key_share=True)
        )
        async with self._engine.begin() as connection:
            if await connection.scalar(memory) is None:
                raise NotFound("Memory not found!")
            if opinion is None:
                await connection.execute(delete(feedback).where(feedback.c.memory_id == memory_id))
                return
            values = {"feedback": opinion, "reason": reason, "created_at": func.now()}
            await connection.execute(
                insert(feedback)
                .values(memory_id=memory_id, project_id=project_id, **values)
                .on_conflict_do_update(index_elements=["memory_id"], set_=values)
            )
