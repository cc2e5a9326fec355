"""Undo of an event: what it added goes, what it changed or deleted returns, as new states.

Nothing is destroyed by it: the history keeps what the event did and that it was taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain import Outcome, Status
from pipeline.errors import Conflict, NotFound
from pipeline.ledger.changes import Memory, text_hash
from pipeline.ledger.events import FINAL, NO_SUCH_EVENT
from pipeline.ledger.filtering import among
from pipeline.ledger.memory_rows import as_memory, bump, remember, states_of, text_columns
from pipeline.ledger.reversal import Place, Step, way_back, with_free_texts
from pipeline.ledger.schema import (
    cleared_lanes,
    events,
    lanes,
    memories,
    memory_history,
    relations,
    turn_vectors,
)
from pipeline.ledger.sql import statement
from pipeline.ledger.turn_vectors import owe_again
from pipeline.outputs import to_bytes
from pipeline.ports import Vector

CHANGED_MEANWHILE = "Its memories changed while it was being undone; ask again."


@dataclass(frozen=True, slots=True)
class Undone:
    """`gone` memories were added by the event, `back` ones had been changed or deleted by it;
    `skipped` says of each memory left as it is why.
    """

    at: datetime
    gone: Sequence[UUID]
    back: Sequence[UUID]
    skipped: Mapping[UUID, str]
    relations_gone: int
    relations_back: int


class Undo:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def texts(self, project_id: UUID, event_id: UUID) -> list[str]:
        """The texts that an undo would bring back and that no stored vector belongs to."""
        async with self._engine.begin() as connection:
            steps = await _steps(connection, project_id, event_id)
        return [s.text for s in steps if s.text is not None and s.text != s.memory.text]

    async def undo(
        self,
        project_id: UUID,
        event_id: UUID,
        *,
        force: bool,
        vectors: Mapping[str, Vector],
        embedder: str,
    ) -> Undone:
        """Take the event's effects back, all in one transaction.

        `vectors`: one for each of `texts`. `force` leaves out what cannot be undone instead of
        refusing it all. Errors: NotFound; Conflict, which names every memory in the way.
        """
        try:
            async with self._engine.begin() as connection:
                event = await _held(connection, project_id, event_id)
                steps = await _steps(connection, project_id, event_id)
                _refuse(event, steps, force=force)
                free = [step for step in steps if step.obstacle is None]
                await _go(connection, event_id, free, vectors, embedder)
                gone, back = await _relations(connection, event_id)
                at = await connection.scalar(
                    update(events)
                    .where(events.c.id == event_id)
                    .values(undone_at=func.now())
                    .returning(events.c.undone_at)
                )
                await owe_again(connection, turn_vectors.c.event_id == event_id)
                await _show_turns(connection, event_id)
        except IntegrityError:  # a person took one of the texts in between
            raise Conflict(CHANGED_MEANWHILE) from None
        return Undone(
            at=at,
            gone=[step.memory.id for step in free if step.text is None],
            back=[step.memory.id for step in free if step.text is not None],
            skipped={step.memory.id: step.obstacle for step in steps if step.obstacle},
            relations_gone=gone,
            relations_back=back,
        )


async def _held(connection: AsyncConnection, project_id: UUID, event_id: UUID) -> Row[Any]:
    """The event under the locks of its lane and of those it cleared: no stage writes there."""
    mine = and_(events.c.project_id == project_id, events.c.id == event_id)
    own = select(events.c.lane_id).where(mine)
    cleared = select(cleared_lanes.c.lane_id).where(cleared_lanes.c.event_id == event_id)
    both = or_(lanes.c.id.in_(own), and_(lanes.c.project_id == project_id, lanes.c.id.in_(cleared)))
    await connection.execute(select(lanes.c.id).where(both).order_by(lanes.c.id).with_for_update())
    found: Row[Any] | None = (await connection.execute(select(events).where(mine))).one_or_none()
    if found is None:
        raise NotFound(NO_SUCH_EVENT)
    return found


def _refuse(event: Row[Any], steps: Sequence[Step], *, force: bool) -> None:
    if event.undone_at is not None:
        raise Conflict(f"This event was undone already, at {event.undone_at.isoformat()}.")
    if event.status not in FINAL:
        raise Conflict(f"This event is still {event.status}: cancel it, or wait for its end.")
    if event.status != Status.SUCCEEDED and not steps:
        raise Conflict(f"There is nothing to undo: the event {event.status} without an effect.")
    obstacles = [step.obstacle for step in steps if step.obstacle]
    if obstacles and not force:
        said = " ".join(obstacles)
        raise Conflict(f'{said} Send {{"force": true}} to undo the rest.')


async def _steps(connection: AsyncConnection, project_id: UUID, event_id: UUID) -> list[Step]:
    """The ways back of all memories the event has touched, each locked."""
    table = memory_history.c
    touched = select(table.memory_id).where(
        table.project_id == project_id, table.event_id == event_id
    )
    # What a replay put others in place of is out of the event's reach.
    standing = and_(memories.c.id.in_(touched), memories.c.replaced_by.is_(None))
    locked = select(memories).where(standing).order_by(memories.c.id)
    current = (await connection.execute(locked.with_for_update())).all()
    states = await states_of(connection, [row.id for row in current])
    ways = [way_back(event_id, as_memory(row), states[row.id]) for row in current]
    copies = {row.id for row in current if row.text_hash != text_hash(row.text)}
    steps = [replace(step, copy=step.memory.id in copies) for step in ways if step is not None]
    return with_free_texts(steps, await _holders(connection, steps))


async def _holders(connection: AsyncConnection, steps: Sequence[Step]) -> dict[Place, UUID]:
    """Who holds the texts that are to come back, in the lanes they come back to."""
    query = select(memories.c.lane_id, memories.c.text_hash, memories.c.id).where(
        memories.c.lane_id.in_({step.memory.lane_id for step in steps}),
        memories.c.text_hash.in_({text_hash(s.text) for s in steps if s.text is not None}),
        memories.c.state == "ACTIVE",
    )
    return {(row.lane_id, row.text_hash): row.id for row in await connection.execute(query)}


async def _go(
    connection: AsyncConnection,
    event_id: UUID,
    steps: Sequence[Step],
    vectors: Mapping[str, Vector],
    embedder: str,
) -> None:
    for step in steps:
        before = step.memory
        values = _values(step)
        if step.text is not None and step.text != before.text:
            if step.text not in vectors:
                raise Conflict(CHANGED_MEANWHILE)
            values |= {"embedding": to_bytes(vectors[step.text]), "embedder": embedder}
        after = as_memory(await bump(connection, before, values))
        visible = before if before.state == "ACTIVE" else None
        reason = f"Undone: event {event_id}."
        await remember(
            connection, visible, after, _outcome(visible, after), reason, undoes=event_id
        )


def _outcome(before: Memory | None, after: Memory) -> Outcome:
    if after.state != "ACTIVE":
        return Outcome.DELETE
    return Outcome.UPDATE if before else Outcome.ADD


def _values(step: Step) -> dict[str, Any]:
    """The columns of a memory after its step."""
    if step.to is None or step.to.text is None:
        return {"state": "RETIRED", "text_hash": text_hash(step.memory.text)}
    return {
        "state": "ACTIVE",
        **({} if step.is_same_copy else text_columns(step.to.text)),
        "metadata": step.to.metadata,
        "expiration_date": step.to.expiration_date,
        "event_id": step.to.event_id,
        "message_ordinal": step.to.message_ordinal,
        "valid_from": step.to.valid_from,
    }


async def _relations(connection: AsyncConnection, event_id: UUID) -> tuple[int, int]:
    """Expire what the event related, for good; bring back what it ended and nobody said again."""
    mine = relations.c.event_id == event_id
    await connection.execute(update(relations).where(mine).values(ended_by=None))
    gone = await connection.execute(
        update(relations)
        .where(mine, relations.c.expired_at.is_(None))
        .values(expired_at=func.now())
    )
    again = relations.alias("again")
    same = [
        again.c[name] == relations.c[name]
        for name in ("lane_id", "source_id", "relation", "destination_id")
    ]
    said_again = exists().where(again.c.expired_at.is_(None), *same)
    back = await connection.execute(
        update(relations)
        .where(relations.c.ended_by == event_id, ~said_again)
        .values(valid_to=None, expired_at=None, ended_by=None)
    )
    return gone.rowcount, back.rowcount


async def _show_turns(connection: AsyncConnection, event_id: UUID) -> None:
    """Let the turns be found again that the event hid, if it was a delete_all."""
    values = {"event_id": event_id}
    shown = (await connection.scalars(statement("show_turns"), values)).all()
    if shown:
        await owe_again(connection, among(turn_vectors.c.lane_id, shown))
