"""Vectors of memories: the rows of `memories` as the source of a vector index."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Executable,
    Integer,
    Row,
    Select,
    Uuid,
    bindparam,
    exists,
    func,
    select,
    tuple_,
)

from pipeline.domain.vectors import FLOAT32, from_bytes
from pipeline.ledger.fetching import execute, fetch, fetch_value
from pipeline.ledger.filter_conditions import among, of_event
from pipeline.ledger.tables import ACTIVE, events, memories, messages, shadows
from pipeline.memories.rows import as_memory
from pipeline.memories.sql import statement
from pipeline.text.speakers import unsigned
from pipeline.vector_index.own_collections import Position
from pipeline.vector_index.projections import Projection, VectorSource

# Name in the message that a memory was extracted from. Memories of earlier releases have no
# `speaker`.
_AUTHOR = (
    select(messages.c.name)
    .join(events, of_event())
    .where(
        events.c.id == memories.c.event_id,
        events.c.lane_id == memories.c.lane_id,
        messages.c.ordinal == memories.c.message_ordinal,
    )
    .scalar_subquery()
    .label("author")
)
# Memories of replays keep the vectors of their own model and are not in the live index.
_SERVED = ~exists().where(shadows.c.id == memories.c.project_id)

# Memories of which the length of vectors is read.
SAMPLED = 100
BEGINNING = Position(UUID(int=0), at=datetime(1, 1, 1, tzinfo=UTC))


class MemoryVectors(VectorSource):
    """Memories as a source of the vector index; see `pipeline.vector_index.projections`."""

    kind, table = "memories", "memories"

    async def count(self) -> int:
        """Count the active memories, without those of replays."""
        query = select(func.count()).select_from(memories)
        query = query.where(_SERVED, memories.c.state == "ACTIVE")
        return int(await fetch_value(self._single, query))

    async def length(self, embedder: str) -> int | None:
        """Return the length of this embedder's vectors, by a sample; None if it has none of them.

        The most frequent length: earlier releases could store a vector of another one.
        """
        some = (
            select(memories.c.embedder, func.octet_length(memories.c.embedding).label("size"))
            .order_by(memories.c.id)
            .limit(SAMPLED)
        )
        rows = await fetch(self._single, some)
        sizes = Counter(row.size for row in rows if row.embedder == embedder and row.size)
        return sizes.most_common(1)[0][0] // FLOAT32.itemsize if sizes else None

    async def unprojected(
        self, ids: Iterable[UUID] | None = None, *, stale_for_s: float, limit: int
    ) -> list[Projection]:
        """Return stale memories, oldest change first; with `ids`, only these and without a limit.

        `stale_for_s`: only memories that have not changed for this many seconds.
        """
        query = select(memories, _AUTHOR).where(
            memories.c.owed,
            memories.c.updated_at <= func.now() - timedelta(seconds=stale_for_s),
        )
        selected = query.limit(limit) if ids is None else query.where(among(memories.c.id, ids))
        return await self._projections(selected.order_by(memories.c.updated_at))

    async def unbuilt(self, after: UUID, *, limit: int) -> list[Projection]:
        """Return memories after this id that the index under construction lacks or has outdated."""
        return await self._projections(
            statement("missing_in_new_index"), {"after": after, "limit": limit}
        )

    async def following(self, after: UUID, *, limit: int) -> list[Projection]:
        """Return active memories with ids after this one, in the order of ids."""
        query = select(memories, _AUTHOR).where(memories.c.id > after, memories.c.state == "ACTIVE")
        return await self._projections(query.order_by(memories.c.id).limit(limit))

    async def mark_foreign_stale(self, embedder: str) -> None:
        """Mark memories with vectors of another embedder as stale."""
        await execute(self._single, statement("mark_foreign_stale"), {"embedder": embedder})

    async def foreign(self, index: str, embedder: str, *, limit: int) -> list[Projection]:
        """Return stale memories with vectors of another embedder, if `index` is the live one."""
        values = {"index": index, "embedder": embedder, "limit": limit}
        return await self._projections(statement("stale_of_other_models"), values)

    async def has(self, project_id: UUID, pins: Mapping[str, str], *, rows: int) -> bool:
        """Tell if there are `rows` active memories with these entity ids.

        The books have the number of each single id, of several ids the rows are counted.
        """
        if await self.own.size(project_id, pins) < rows:
            return False
        if len(pins) == 1:
            return True
        values = {"project_id": project_id, "stop": rows, **pins}
        [row] = await self._direct.rows(_counted(*pins), values)
        return int(row.count) >= rows

    async def pages(
        self, project_id: UUID, pins: Mapping[str, str], after: Position | None, *, limit: int
    ) -> AsyncIterator[tuple[list[Projection], Position]]:
        """Yield active memories with these entity ids, in the order of creation."""
        values = {"project_id": project_id, "limit": limit, **pins}
        position = after or BEGINNING
        while rows := await fetch(
            self._single, _page(*pins), values | {"at": position.at, "after": position.id}
        ):
            position = Position(rows[-1].id, at=rows[-1].created_at)
            yield [as_projection(row) for row in rows], position

    @staticmethod
    def recorded(lane_ids: Sequence[UUID], embedder: str, *, stale: bool) -> Select[Any]:
        """Query for the numbers of active memories by lane, with or without stale ones."""
        table = memories.c
        query = select(table.lane_id, func.count().label("rows")).where(
            among(table.lane_id, lane_ids), table.state == "ACTIVE", table.embedder == embedder
        )
        if not stale:
            query = query.where(table.projected_version != 0)
        return query.group_by(table.lane_id)

    @staticmethod
    @cache
    def stale(*ids: str) -> Select[Any]:
        """Statement for the stale vectors of the scopes with these entity ids, newest first."""
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

    async def _projections(
        self, query: Executable, values: Mapping[str, Any] | None = None
    ) -> list[Projection]:
        return [as_projection(row) for row in await fetch(self._single, query, values)]


def _with_pins(*pins: str) -> list[ColumnElement[bool]]:
    """The conditions on active memories with these entity ids."""
    table = memories.c
    return [
        table.project_id == bindparam("project_id"),
        table.state == ACTIVE,
        *(table[name] == bindparam(name) for name in pins),
    ]


@cache
def _counted(*pins: str) -> Select[Any]:
    some = select(memories.c.id).where(*_with_pins(*pins)).limit(bindparam("stop", type_=Integer))
    return select(func.count().label("count")).select_from(some.subquery("some"))


@cache
def _page(*pins: str) -> Select[Any]:
    """A page of memories with these entity ids, in the order of creation."""
    table = memories.c
    position = tuple_(table.created_at, table.id)
    after = tuple_(bindparam("at", type_=DateTime(timezone=True)), bindparam("after", type_=Uuid))
    return (
        select(memories, _AUTHOR)
        .where(*_with_pins(*pins), position > after)
        .order_by(table.created_at, table.id)
        .limit(bindparam("limit", type_=Integer))
    )


def as_projection(row: Row[Any]) -> Projection:
    """A row of `memories` with its `author` as the state the vector index should have."""
    memory, vector = as_memory(row), from_bytes(row.embedding)
    return Projection(
        id=memory.id,
        scope=memory.scope,
        text=unsigned(memory.text, row.author),
        version=memory.version,
        wanted=memory.state == "ACTIVE",
        vector=vector,
        embedder=row.embedder,
        recorded=row.projected_version,
    )
