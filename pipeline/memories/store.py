"""Memories and their history. A model's UPDATE or DELETE supersedes: every state stays readable.

`memories` is the current state, `memory_history` every state a memory ever had; both are written
in one transaction, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Executable,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    exists,
    func,
    select,
)

from pipeline.domain.errors import NotFound
from pipeline.domain.filters import Filter
from pipeline.domain.memories import Memory
from pipeline.domain.reconcile import Write
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import from_bytes
from pipeline.ledger.tables import events, memories, memory_history, messages, shadows
from pipeline.ledger.where import among, matches, unexpired
from pipeline.memories.rows import as_memory
from pipeline.memories.sql import statement
from pipeline.text.equality import text_hash
from pipeline.text.speakers import unsigned
from pipeline.vector_index.projections import Projected, Projection


def as_projection(row: Row[Any]) -> Projection:
    memory, vector = as_memory(row), from_bytes(row.embedding)
    return Projection(
        id=memory.id,
        scope=memory.scope,
        text=unsigned(memory.text, row.speaker),
        version=memory.version,
        kept=memory.state == "ACTIVE",
        vector=vector,
        embedder=row.embedder,
    )


@dataclass(frozen=True, slots=True)
class Around:
    """`known`: ids of the memories that hold exactly one of the texts, by text hash."""

    empty: bool
    known: Mapping[bytes, UUID]


# Who said what it was made from.
_SPEAKER = (
    select(messages.c.name)
    .join(events, and_(events.c.lane_id == messages.c.lane_id, events.c.seq == messages.c.seq))
    .where(events.c.id == memories.c.event_id, messages.c.ordinal == memories.c.message_ordinal)
    .scalar_subquery()
    .label("speaker")
)
# A shadow's memories stay in the vectors of its own model.
_SERVED = ~exists().where(shadows.c.id == memories.c.project_id)


class Memories(Projected):
    kind, table = "memories", "memories"

    # What the stages ask

    async def around(self, scope: Scope, texts: Sequence[str]) -> Around:
        """What a scope holds that new facts with these texts are to be compared with."""
        values = {"lane_id": scope.lane_id, "hashes": [text_hash(text) for text in texts]}
        rows = await self._direct.rows(statement("around"), values)
        return Around(
            empty=rows[0].empty,
            known={row.text_hash: row.id for row in rows if row.id is not None},
        )

    async def held(self, scope: Scope, *, embedder: str, limit: int) -> list[tuple[UUID, bytes]]:
        """Current memories of exactly this scope with their packed vectors of this embedder."""
        values = {"lane_id": scope.lane_id, "embedder": embedder, "limit": limit}
        rows = await self._direct.rows(statement("held"), values)
        return [(row.id, row.embedding) for row in rows]

    async def active(self, project_id: ProjectId, ids: Sequence[UUID]) -> list[Memory]:
        """Those of the ids that are current memories of the project, in no particular order."""
        if not ids:
            return []
        query = select(memories).where(
            memories.c.project_id == project_id,
            among(memories.c.id, ids),
            memories.c.state == "ACTIVE",
        )
        return [as_memory(row) for row in await self._rows(query)]

    async def touchable(self, scope: Scope, writes: Sequence[Write]) -> list[Memory]:
        """Every memory the writes may change or collide with, as it is now."""
        values = {
            "lane_id": scope.lane_id,
            "ids": [write.target for write in writes if write.target],
            "hashes": [text_hash(text) for w in writes for text in (w.text, w.fact_text)],
        }
        rows = await self._direct.rows(statement("touchable"), values)
        return [as_memory(row) for row in rows]

    async def last_changed_by(
        self, scope: Scope, ids: Sequence[UUID], event_ids: Sequence[UUID]
    ) -> set[UUID]:
        """Those of the scope's memories whose newest version one of the events wrote."""
        newest = and_(
            memory_history.c.memory_id == memories.c.id,
            memory_history.c.version == memories.c.version,
        )
        query = (
            select(memories.c.id)
            .join(memory_history, newest)
            .where(
                memories.c.lane_id == scope.lane_id,
                among(memories.c.id, ids),
                among(memory_history.c.event_id, event_ids),
            )
        )
        return {row.id for row in await self._rows(query)}

    # What the vector index asks, see projections.Source

    async def count(self) -> int:
        [(count,)] = await self._rows(
            select(func.count()).select_from(memories).where(_SERVED, memories.c.state == "ACTIVE")
        )
        return int(count)

    async def unprojected(
        self, ids: Iterable[UUID] | None = None, *, owed_for_s: float, limit: int
    ) -> list[Projection]:
        query = select(memories, _SPEAKER).where(
            memories.c.owed,
            memories.c.updated_at <= func.now() - timedelta(seconds=owed_for_s),
        )
        chosen = query.limit(limit) if ids is None else query.where(among(memories.c.id, ids))
        return await self._projections(chosen.order_by(memories.c.updated_at))

    async def unbuilt(self, after: UUID, *, limit: int) -> list[Projection]:
        return await self._projections(statement("unbuilt"), {"after": after, "limit": limit})

    async def following(self, after: UUID, *, limit: int) -> list[Projection]:
        query = select(memories, _SPEAKER).where(
            memories.c.id > after, memories.c.state == "ACTIVE"
        )
        return await self._projections(query.order_by(memories.c.id).limit(limit))

    async def owe_foreign(self, embedder: str) -> None:
        async with self._single.connect() as connection:
            await connection.execute(statement("owe_foreign"), {"embedder": embedder})

    async def foreign(self, index: str, embedder: str, *, limit: int) -> list[Projection]:
        asked = {"index": index, "embedder": embedder, "limit": limit}
        return await self._projections(statement("foreign"), asked)

    async def owed(
        self, where: Mapping[str, str], *, embedder: str, limit: int
    ) -> list[tuple[UUID, bytes]]:
        values = {**where, "embedder": embedder, "limit": limit}
        rows = await self._direct.rows(_owed(*where), values)
        return [(row.id, row.embedding) for row in rows]

    async def _projections(
        self, query: Executable, values: Mapping[str, Any] | None = None
    ) -> list[Projection]:
        return [as_projection(row) for row in await self._rows(query, values)]

    # What people ask

    async def get(self, project_id: ProjectId, memory_id: UUID) -> Memory:
        query = select(memories).where(
            memories.c.project_id == project_id, memories.c.id == memory_id
        )
        rows = await self._rows(query.where(memories.c.state == "ACTIVE"))
        if not rows:
            raise NotFound("Memory not found!")
        return as_memory(rows[0])

    async def page(
        self, project_id: ProjectId, tree: Filter, *, expired: bool, limit: int, offset: int
    ) -> tuple[list[Memory], int]:
        """Current memories of the project that match, newest first, and the number of all matches.

        `expired`: include memories past their expiration date.
        """
        current = and_(memories.c.state == "ACTIVE", matches(project_id, tree))
        if not expired:
            current = and_(current, unexpired())
        query = (
            select(memories)
            .where(current)
            .order_by(memories.c.created_at.desc(), memories.c.id)
            .limit(limit)
            .offset(offset)
        )
        count = (await self._rows(select(func.count()).select_from(memories).where(current)))[0][0]
        return [as_memory(row) for row in await self._rows(query)], count

    async def categories(self, project_id: ProjectId) -> list[str]:
        """Every category that a current memory of the project is in, by name."""
        held = func.unnest(memories.c.categories).label("held")
        query = (
            select(held)
            .where(memories.c.project_id == project_id, memories.c.state == "ACTIVE")
            .distinct()
            .order_by(held)
        )
        return [row.held for row in await self._rows(query)]


@cache
def _owed(*ids: str) -> Select[Any]:
    table = memories.c
    return (
        select(table.id, table.embedding)
        .where(
            table.owed,
            table.state == "ACTIVE",
            table.embedder == bindparam("embedder"),
            *(table[name] == bindparam(name) for name in ids),
        )
        .order_by(table.updated_at.desc())
        .limit(bindparam("limit", type_=Integer))
    )
