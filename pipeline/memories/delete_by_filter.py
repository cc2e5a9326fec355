"""Deleting all that matches a filter, as an event of its own that can be polled and undone.

A filter of nothing but ids clears whole scopes: what waits in their lanes is cancelled in the same
transaction, so that nothing said before comes back after. Any other filter takes the memories that
match it now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    case,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.events import EventType, StageName, Status
from pipeline.domain.filters import Filter, of_ids_only, pinned
from pipeline.domain.lanes import Wake
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.tables import (
    events,
    lanes,
    memories,
    memory_history,
    receipts,
    relations,
    turn_vectors,
)
from pipeline.ledger.where import among, lanes_matching, matches
from pipeline.memories.editing import end_unstated
from pipeline.memories.rows import retire_all
from pipeline.memories.sql import statement
from pipeline.tenants.projects import keep
from pipeline.turns.vectors import owe_again

# The receipt lists so many; the history of each memory names the event however many there are.
LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """`options` are kept with the event."""

    kind: EventType
    tree: Filter
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cleared:
    """`wakes`: lanes that were at work and have nothing left to do."""

    event_id: UUID
    memory_ids: Sequence[UUID]
    wakes: Sequence[Wake]


class Clearing:
    def __init__(self, engine: AsyncEngine, *, grace: timedelta) -> None:
        self._engine = engine
        self._grace = grace

    async def clear(self, project_id: ProjectId, asked: Asked) -> Cleared:
        """Retire what matches, in one transaction that ends with the event SUCCEEDED."""
        event_id, scope = uuid4(), Scope(project_id, **pinned(asked.tree))
        whole = of_ids_only(asked.tree)
        theirs = lanes_matching(project_id, asked.tree) if whole else false()
        async with self._engine.begin() as connection:
            await keep(connection, project_id)
            lane_ids = await _lock_lanes(connection, scope, theirs)
            wakes = await self._cancel(connection, lane_ids if whole else (), event_id)
            # A scope that begins in this moment is not among the locked lanes, and stays as it is.
            locked = among(memories.c.lane_id, lane_ids)
            where = locked if whole else matches(project_id, asked.tree)
            gone = await retire_all(
                connection, where, reason="Deleted by request.", event_id=event_id
            )
            if whole:
                await _forget_scopes(connection, lane_ids, event_id)
            else:
                told = select(memory_history.c.memory_id).where(
                    memory_history.c.event_id == event_id
                )
                await end_unstated(connection, memories.c.id.in_(told), ended_by=event_id)
            await _record(connection, event_id, scope, asked, deleted=len(gone))
        return Cleared(event_id, gone, wakes)

    async def _cancel(
        self, connection: AsyncConnection, lane_ids: Sequence[UUID], event_id: UUID
    ) -> list[Wake]:
        values = {
            "lane_ids": list(lane_ids),
            "why": f"Its scope was deleted before it had an effect, by event {event_id}.",
            "grace": self._grace,
        }
        rows = (await connection.execute(statement("cancel_lanes"), values)).all()
        return [Wake(row.id, row.fence, StageName.EXTRACT) for row in rows]


async def _lock_lanes(
    connection: AsyncConnection, scope: Scope, theirs: ColumnElement[bool]
) -> list[UUID]:
    """Lock the lanes to be cleared and the event's own lane. Returns the ids of the former."""
    own = {
        "id": scope.lane_id,
        "project_id": scope.project_id,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "app_id": scope.app_id,
        "run_id": scope.run_id,
        "state": "IDLE",
    }
    await connection.execute(postgresql.insert(lanes).values(own).on_conflict_do_nothing())
    both = or_(theirs, lanes.c.id == scope.lane_id)
    rows = await lock_lanes(connection, both, theirs.label("cleared"))
    return [row.id for row in rows if row.cleared]


async def _forget_scopes(
    connection: AsyncConnection, lane_ids: Sequence[UUID], event_id: UUID
) -> None:
    """Expire all their relations, and hide what was said there from models and searches."""
    values = {"lane_ids": list(lane_ids), "event_id": event_id}
    await connection.execute(statement("hide_turns"), values)
    said = select(events.c.id).where(among(events.c.lane_id, lane_ids))
    await owe_again(connection, turn_vectors.c.event_id.in_(said))
    await connection.execute(
        update(relations)
        .where(relations.c.expired_at.is_(None), among(relations.c.lane_id, lane_ids))
        .values(expired_at=func.now(), ended_by=event_id)
    )


async def _record(
    connection: AsyncConnection, event_id: UUID, scope: Scope, asked: Asked, *, deleted: int
) -> None:
    """The event at its lane's tail, ended, and its receipt."""
    tail = lanes.c.accepted_seq + 1
    seq = await connection.scalar(
        update(lanes)
        .where(lanes.c.id == scope.lane_id)
        .values(
            accepted_seq=tail,
            settled_seq=case((lanes.c.state == "IDLE", tail), else_=lanes.c.settled_seq),
        )
        .returning(lanes.c.accepted_seq)
    )
    await connection.execute(
        insert(events).values(
            id=event_id,
            project_id=scope.project_id,
            lane_id=scope.lane_id,
            seq=seq,
            event_type=asked.kind,
            status=Status.SUCCEEDED,
            options=asked.options,
            tokens=0,
            note=_note(deleted),
            started_at=func.now(),
            completed_at=func.now(),
        )
    )
    state = memory_history.c
    lines = (
        select(
            state.event_id,
            func.row_number().over(order_by=state.memory_id) - 1,
            state.event,
            state.memory_id,
            state.old_text,
            state.old_text,
            state.reason,
            literal(0),
        )
        .where(state.event_id == event_id)
        .order_by(state.memory_id)
        .limit(LISTED)
    )
    names = [column.name for column in receipts.columns]
    await connection.execute(insert(receipts).from_select(names, lines))


def _note(deleted: int) -> str:
    shown = f" The receipt lists {LISTED} of them." if deleted > LISTED else ""
    return f"Memories deleted: {deleted}.{shown}"
