"""Memories and their history. A model's UPDATE or DELETE supersedes: every state stays readable.

`memories` is the current state, `memory_history` every state a memory ever had; both are written
in one transaction, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import mul
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain import Activation, Batch, Outcome, Role, Scope, StageName, Usage
from pipeline.errors import InvalidInput, NotFound
from pipeline.ledger import fence
from pipeline.ledger.changes import Change, Memory, Shelf, Write, carry_out, text_hash
from pipeline.ledger.schema import memories, memory_history, receipts
from pipeline.outputs import Applied, dump, from_bytes, to_bytes
from pipeline.ports import Vector


@dataclass(frozen=True, slots=True)
class Projection:
    """What the vector index should hold of a memory: its vector, or nothing once it is retired."""

    memory: Memory
    vector: list[float]
    embedder: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    memory_id: UUID
    version: int
    event: str
    old_text: str | None
    new_text: str | None
    metadata: dict[str, Any]
    reason: str | None
    event_id: UUID | None
    created_at: Any


class Memories:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    # What the stages ask

    async def with_texts(self, scope: Scope, texts: Sequence[str]) -> dict[bytes, UUID]:
        """Ids of the scope's active memories that hold exactly one of these texts, by text hash."""
        query = select(memories.c.text_hash, memories.c.id).where(
            memories.c.lane_id == scope.lane_id,
            memories.c.text_hash.in_({text_hash(text) for text in texts}),
            memories.c.state == "ACTIVE",
        )
        return {row.text_hash: row.id for row in await self._rows(query)}

    async def any_in(self, scope: Scope) -> bool:
        held = and_(memories.c.lane_id == scope.lane_id, memories.c.state == "ACTIVE")
        return bool((await self._rows(select(exists().where(held))))[0][0])

    async def active(self, project_id: UUID, ids: Sequence[UUID]) -> list[Memory]:
        """Those of the ids that are current memories of the project, in no particular order."""
        if not ids:
            return []
        query = select(memories).where(
            memories.c.project_id == project_id,
            memories.c.id.in_(ids),
            memories.c.state == "ACTIVE",
        )
        return [_memory(row) for row in await self._rows(query)]

    async def apply(
        self, activation: Activation, batch: Batch, writes: Sequence[Write], *, embedder: str
    ) -> Applied:
        """Carry the writes out: memories, history, receipts and the stage's output, or nothing.

        Errors: LaneLost where another activation holds the lane.
        """
        async with self._engine.begin() as connection:
            await fence.hold(connection, activation)
            shelf = Shelf.of(batch.scope, await _touchable(connection, batch.scope, writes))
            changes = carry_out(writes, shelf)
            touched = await _store(connection, changes, embedder)
            await _receipt(connection, changes)
            applied = Applied(
                touched=touched,
                changed=tuple(c.write.fact for c in changes if c.after is not None),
            )
            await fence.keep(connection, activation, StageName.APPLY, dump(applied), Usage())
            return applied

    # What the vector index asks

    async def unprojected(
        self, ids: Iterable[UUID] | None = None, *, owed_for_s: float, limit: int
    ) -> list[Projection]:
        """Memories the vector index has owed a write for so long: of these ids, or the oldest."""
        query = select(memories).where(
            memories.c.projected_version != memories.c.version,
            memories.c.updated_at <= func.now() - timedelta(seconds=owed_for_s),
        )
        if ids is not None:
            query = query.where(memories.c.id.in_(list(ids)))
        rows = await self._rows(query.order_by(memories.c.updated_at).limit(limit))
        return [Projection(_memory(row), from_bytes(row.embedding), row.embedder) for row in rows]

    async def projected(self, done: Sequence[Projection]) -> None:
        """Note that the index holds these versions. A memory that has moved on stays owed."""
        if not done:
            return
        async with self._single.connect() as connection:
            await connection.execute(
                update(memories)
                .where(memories.c.id == bindparam("key"), memories.c.version == bindparam("seen"))
                .values(projected_version=bindparam("seen")),
                [{"key": p.memory.id, "seen": p.memory.version} for p in done],
            )

    # What people ask

    async def get(self, project_id: UUID, memory_id: UUID) -> Memory:
        query = select(memories).where(
            memories.c.project_id == project_id, memories.c.id == memory_id
        )
        rows = await self._rows(query.where(memories.c.state == "ACTIVE"))
        if not rows:
            raise NotFound("Memory not found!")
        return _memory(rows[0])

    async def page(
        self, where: ColumnElement[bool], *, limit: int, offset: int
    ) -> tuple[list[Memory], int]:
        """Current memories that match, newest first, and how many match in all."""
        current = and_(memories.c.state == "ACTIVE", where)
        query = (
            select(memories)
            .where(current)
            .order_by(memories.c.created_at.desc(), memories.c.id)
            .limit(limit)
            .offset(offset)
        )
        count = (await self._rows(select(func.count()).select_from(memories).where(current)))[0][0]
        return [_memory(row) for row in await self._rows(query)], count

    async def matching(self, where: ColumnElement[bool], ids: Sequence[UUID]) -> list[Memory]:
        if not ids:
            return []
        query = select(memories).where(memories.c.id.in_(ids), memories.c.state == "ACTIVE", where)
        return [_memory(row) for row in await self._rows(query)]

    async def similarity(
        self, ids: Sequence[UUID], vector: Vector, *, embedder: str
    ) -> dict[UUID, float]:
        """Cosine (-1..1) of these memories to a unit vector of the same embedder."""
        if not ids:
            return {}
        query = select(memories.c.id, memories.c.embedding).where(
            memories.c.id.in_(ids), memories.c.embedder == embedder
        )
        return {
            row.id: sum(map(mul, vector, from_bytes(row.embedding)))
            for row in await self._rows(query)
        }

    async def by_words(
        self, where: ColumnElement[bool], words: Sequence[str], *, limit: int
    ) -> dict[UUID, float]:
        """Memories that hold any of the words, with PostgreSQL's cover-density rank (>= 0)."""
        if not words:
            return {}
        # Words become lexemes one by one, so no user text is ever parsed as query syntax.
        any_word: ColumnElement[Any] = func.to_tsquery("english", "")
        for word in words:
            any_word = any_word.op("||")(func.plainto_tsquery("english", word))
        document = func.to_tsvector("english", memories.c.text)
        rank = func.ts_rank_cd(document, any_word, 1).label("rank")
        query = (
            select(memories.c.id, rank)
            .where(memories.c.state == "ACTIVE", where, document.op("@@")(any_word))
            .order_by(rank.desc(), memories.c.id)
            .limit(limit)
        )
        return {row.id: float(row.rank) for row in await self._rows(query)}

    async def history(self, project_id: UUID, memory_id: UUID) -> list[HistoryEntry]:
        """Every state the memory had, oldest first; kept after a DELETE too."""
        table = memory_history.c
        query = (
            select(memory_history)
            .where(table.project_id == project_id, table.memory_id == memory_id)
            .order_by(table.version)
        )
        return [
            HistoryEntry(
                row.memory_id,
                row.version,
                row.event,
                row.old_text,
                row.new_text,
                row.metadata,
                row.reason,
                row.event_id,
                row.created_at,
            )
            for row in await self._rows(query)
        ]

    async def edit(
        self,
        project_id: UUID,
        memory_id: UUID,
        *,
        values: Mapping[str, Any],
        vector: Vector | None = None,
        embedder: str = "",
    ) -> Memory:
        """A person's update: `values` are the columns to change; `vector` goes with a new text.

        Errors: NotFound; InvalidInput for an immutable memory or a text stored twice.
        """
        async with self._engine.begin() as connection:
            before = await _for_update(connection, project_id, memory_id)
            if before.immutable:
                raise InvalidInput("This memory is immutable: delete it and add a new one.")
            changed = dict(values)
            if "text" in values:
                changed["text_hash"] = text_hash(values["text"])
                await _refuse_twin(connection, before, changed["text_hash"])
                changed |= {"embedding": to_bytes(vector or ()), "embedder": embedder}
            row = await _bump(connection, before, changed)
            await _remember(connection, before, _memory(row), Outcome.UPDATE, "Edited by request.")
            return _memory(row)

    async def retire(self, project_id: UUID, memory_id: UUID) -> None:
        """A person's delete of one memory: gone from reads and search, its history kept.

        Errors: NotFound.
        """
        async with self._engine.begin() as connection:
            before = await _for_update(connection, project_id, memory_id)
            row = await _bump(connection, before, {"state": "RETIRED"})
            await _remember(connection, before, _memory(row), Outcome.DELETE, "Deleted by request.")

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        async with self._single.connect() as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
            return rows


async def _touchable(
    connection: AsyncConnection, scope: Scope, writes: Sequence[Write]
) -> list[Memory]:
    """Every memory the writes may change or collide with, locked for this transaction."""
    targets = {write.target for write in writes if write.target}
    hashes = {text_hash(text) for write in writes for text in (write.text, write.fact_text)}
    query = (
        select(memories)
        .where(
            memories.c.lane_id == scope.lane_id,
            memories.c.state == "ACTIVE",
            or_(memories.c.id.in_(targets), memories.c.text_hash.in_(hashes)),
        )
        .order_by(memories.c.id)
        .with_for_update()
    )
    return [_memory(row) for row in (await connection.execute(query)).all()]


async def _store(
    connection: AsyncConnection, changes: Sequence[Change], embedder: str
) -> tuple[UUID, ...]:
    """Write the last state of each touched memory and every state into its history."""
    last = {c.after.id: c for c in changes if c.after is not None}
    vectors = {
        c.after.id: to_bytes(c.write.vector)
        for c in changes
        if c.after is not None and c.write.vector is not None
    }
    born = {c.after.id for c in changes if c.after is not None and c.before is None}
    # Updates first: one of them may free the text that a new memory takes.
    for memory_id, change in last.items():
        if memory_id not in born and change.after is not None:
            values = _columns(change.after)
            if memory_id in vectors:
                values |= {"embedding": vectors[memory_id], "embedder": embedder}
            await connection.execute(
                update(memories)
                .where(memories.c.id == memory_id)
                .values(**values, updated_at=func.now())
            )
    new = [
        _columns(change.after) | {"embedding": vectors[memory_id], "embedder": embedder}
        for memory_id, change in last.items()
        if memory_id in born and change.after is not None
    ]
    if new:
        await connection.execute(insert(memories), new)
    for change in changes:
        if change.after is not None:
            await _remember(connection, change.before, change.after, change.outcome, change.reason)
    return tuple(last)


async def _receipt(connection: AsyncConnection, changes: Sequence[Change]) -> None:
    places: dict[UUID, int] = {}
    rows = []
    for change in changes:
        event_id = change.write.event.id
        places[event_id] = places.get(event_id, -1) + 1
        rows.append(
            {
                "event_id": event_id,
                "ordinal": places[event_id],
                "outcome": change.outcome,
                "memory_id": change.memory_id,
                "text": change.text,
                "previous_text": change.before.text if change.before else None,
                "reason": change.reason,
                "message_ordinal": change.write.message_ordinal,
            }
        )
    if rows:
        await connection.execute(insert(receipts), rows)


async def _for_update(connection: AsyncConnection, project_id: UUID, memory_id: UUID) -> Memory:
    row = (
        await connection.execute(
            select(memories)
            .where(
                memories.c.project_id == project_id,
                memories.c.id == memory_id,
                memories.c.state == "ACTIVE",
            )
            .with_for_update()
        )
    ).one_or_none()
    if row is None:
        raise NotFound("Memory not found!")
    return _memory(row)


async def _refuse_twin(connection: AsyncConnection, memory: Memory, digest: bytes) -> None:
    twin = await connection.scalar(
        select(memories.c.id).where(
            memories.c.lane_id == memory.lane_id,
            memories.c.text_hash == digest,
            memories.c.state == "ACTIVE",
            memories.c.id != memory.id,
        )
    )
    if twin is not None:
        raise InvalidInput(f"Memory {twin} of the same scope already holds this text.")


async def _bump(connection: AsyncConnection, before: Memory, values: dict[str, Any]) -> Row[Any]:
    statement = (
        update(memories)
        .where(memories.c.id == before.id)
        .values(**values, version=before.version + 1, updated_at=func.now())
        .returning(memories)
    )
    row: Row[Any] = (await connection.execute(statement)).one()
    return row


async def _remember(
    connection: AsyncConnection,
    before: Memory | None,
    after: Memory,
    outcome: Outcome,
    reason: str,
) -> None:
    await connection.execute(
        insert(memory_history).values(
            memory_id=after.id,
            version=after.version,
            project_id=after.scope.project_id,
            event=outcome,
            old_text=before.text if before else None,
            new_text=after.text if after.state == "ACTIVE" else None,
            metadata=after.metadata,
            reason=reason,
            event_id=after.event_id,
            message_ordinal=after.message_ordinal,
            valid_from=after.valid_from,
        )
    )


def _columns(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "project_id": memory.scope.project_id,
        "lane_id": memory.lane_id,
        "user_id": memory.scope.user_id,
        "agent_id": memory.scope.agent_id,
        "app_id": memory.scope.app_id,
        "run_id": memory.scope.run_id,
        "text": memory.text,
        "text_hash": text_hash(memory.text),
        "metadata": memory.metadata,
        "attributed_to": memory.attributed_to,
        "state": memory.state,
        "immutable": memory.immutable,
        "expiration_date": memory.expiration_date,
        "version": memory.version,
        "event_id": memory.event_id,
        "message_ordinal": memory.message_ordinal,
        "valid_from": memory.valid_from,
    }


def _memory(row: Row[Any]) -> Memory:
    return Memory(
        id=row.id,
        lane_id=row.lane_id,
        scope=Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id),
        text=row.text,
        metadata=row.metadata,
        attributed_to=Role(row.attributed_to),
        state=row.state,
        immutable=row.immutable,
        expiration_date=row.expiration_date,
        version=row.version,
        event_id=row.event_id,
        message_ordinal=row.message_ordinal,
        valid_from=row.valid_from,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
