"""Late statements that an undone event had superseded: they are shown as without the event.

A statement that arrives after a later one is stored as retired, and `superseded_by` names the
memory of that. The undo of the later one shows it. Of memories that another event or a person has
merged into one since, the undo changes nothing: see `merged`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, LargeBinary, Row, any_, literal, select, union_all, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.rollback import Succession, TextKey, successions
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.tables import ACTIVE, events, memories, memory_history
from pipeline.memories.rows import as_memory, next_version, write_history
from pipeline.text.equality import text_hash

WITHOUT_VECTOR = [column for column in memories.c if column.name not in ("embedding", "terms")]


async def superseded(
    connection: AsyncConnection, memory_ids: Collection[UUID]
) -> Sequence[Row[Any]]:
    """The retired memories that these have superseded, with the change that retired each.

    `outcome`: NOOP for a late statement. `undoes`: the event whose undo retired it. `author`: the
    event that merged it, and `seq` its place in the lane.
    """
    history = memory_history
    change: list[ColumnElement[Any]] = [
        history.c.event.label("outcome"),
        history.c.undoes,
        history.c.event_id.label("author"),
        events.c.seq,
    ]
    query = (
        select(*WITHOUT_VECTOR, *change)
        .join(
            history,
            (history.c.memory_id == memories.c.id) & (history.c.version == memories.c.version),
        )
        .outerjoin(events, events.c.id == history.c.event_id)
        .where(
            among(memories.c.superseded_by, memory_ids),
            memories.c.state != ACTIVE,
            memories.c.replaced_by.is_(None),
        )
        .order_by(memories.c.id)
    )
    rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
    return rows


def is_late(row: Row[Any]) -> bool:
    """Tell if a row of `superseded` is a statement, not a memory that was merged."""
    return row.outcome == Outcome.NOOP or row.undoes is not None


def merged(rows: Iterable[Row[Any]], event: Row[Any]) -> dict[UUID, tuple[UUID, UUID | None]]:
    """Memories that took in another one after the event: the other one, and who merged it."""
    return {
        row.superseded_by: (row.id, row.author)
        for row in rows
        if not is_late(row) and (row.seq is None or row.seq > event.seq)
    }


async def show_late_statements(
    connection: AsyncConnection,
    undone: Collection[UUID],
    rows: Iterable[Row[Any]],
    *,
    event_id: UUID,
    key_id: UUID | None,
) -> list[Succession]:
    """Show the late statements that the memories superseded before the undo.

    `rows`: those of `superseded`, locked like the memories.
    """
    own = set(undone)
    late = [as_memory(row) for row in rows if is_late(row) and row.id not in own]
    by_id = own & {memory.superseded_by for memory in late}
    if not by_id:
        return []
    query = select(*WITHOUT_VECTOR).where(among(memories.c.id, by_id)).order_by(memories.c.id)
    current = [as_memory(row) for row in await connection.execute(query)]
    shown = successions(current, late, await _taken(connection, late))
    by = {"undoes": event_id, "key_id": key_id}
    for succession in shown:
        await _show(connection, succession, f"Undone: event {event_id}.", by)
    return shown


async def _show(
    connection: AsyncConnection, succession: Succession, reason: str, by: Mapping[str, Any]
) -> None:
    """Write the new states of a statement, and of those that it supersedes."""
    statement, memory = succession.shown, succession.replaced
    if memory is not None:
        retired = {"state": "RETIRED", "superseded_by": statement.id}
        after = as_memory(await next_version(connection, memory, retired))
        why = f"{reason} A later statement stands: memory {statement.id}."
        await write_history(connection, memory, after, Outcome.DELETE, why, **by)
    older = [row.id for row in succession.older]
    if older:
        again = update(memories).where(among(memories.c.id, older))
        await connection.execute(again.values(superseded_by=statement.id))
    active = {"state": "ACTIVE", "superseded_by": None}
    after = as_memory(await next_version(connection, statement, active))
    await write_history(connection, None, after, Outcome.ADD, reason, **by)


async def _taken(connection: AsyncConnection, late: Sequence[Memory]) -> set[TextKey]:
    """Texts of the statements that an active memory has, or that a person deleted since."""
    hashes = literal([text_hash(memory.text) for memory in late], ARRAY(LargeBinary))
    these = (
        among(memories.c.lane_id, {memory.lane_id for memory in late}),
        memories.c.text_hash == any_(hashes),
    )
    key = (memories.c.lane_id, memories.c.text_hash)
    active = select(*key).where(*these, memories.c.state == ACTIVE)
    since = min(memory.created_at for memory in late if memory.created_at is not None)
    forgotten = select(*key).where(*these, memories.c.forgotten_at >= since)
    rows = await connection.execute(union_all(active, forgotten))
    return {(row.lane_id, row.text_hash) for row in rows}
