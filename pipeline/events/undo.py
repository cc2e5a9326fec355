"""Undo of an event: its new memories are retired, changed and deleted ones restored, as new states.

Nothing is deleted: the history keeps the event's changes and the undo. The undo is planned without
a lock and written with an expected version for each memory (optimistic lock), in a few statements:
the lanes are locked only for these, for any number of memories.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import LargeBinary, Row, and_, any_, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict
from pipeline.domain.events import FINAL, EventType, Status
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory, structure
from pipeline.domain.rollback import (
    TextKey,
    UndoStep,
    refuse_merged,
    refuse_taken_texts,
    undo_step,
    versions_of_present,
)
from pipeline.domain.suggestions import SuggestionState
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.events.late_statements import WITHOUT_VECTOR, merged, show_late_statements, superseded
from pipeline.events.sql import statement
from pipeline.events.store import NO_SUCH_EVENT
from pipeline.ledger.failures import is_taken_text
from pipeline.ledger.fetching import known_row
from pipeline.ledger.filter_conditions import among, one_of
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.row_values import columns_of, json_rows
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import (
    cleared_lanes,
    events,
    lanes,
    memories,
    memory_history,
    receipts,
    relations,
    suggestions,
    summary_states,
    turn_vectors,
)
from pipeline.memories.rows import as_memory, states_of
from pipeline.memories.sql import statement as memory_statement
from pipeline.summaries.sql import statement as summary_statement
from pipeline.text import terms
from pipeline.text.equality import text_hash
from pipeline.text.times.past import current_slot
from pipeline.turns.vectors import mark_turns_stale

CHANGED_DURING_UNDO = "Its memories changed while it was being undone; ask again."
# Number of tries to plan an undo whose memories change at the same time.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Undone:
    """Result of an undo.

    `at`: None for a dry run. `gone`: memories that are retired, which the event had added; `back`:
    those that are active, which it had changed, deleted or superseded; `skipped`: the reason for
    each memory that was left unchanged.
    """

    at: datetime | None
    gone: Sequence[UUID]
    back: Sequence[UUID]
    skipped: Mapping[UUID, str]
    relations_gone: int
    relations_back: int


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """Plan of an undo, computed without a lock; each step names the version it starts from.

    `restated`: the memories that the event repeated, for undo_restatements. `superseded`: those
    that its memories have superseded, see `pipeline.events.late_statements`.
    """

    event: Row[Any]
    steps: Sequence[UndoStep]
    restated: Sequence[Mapping[str, Any]]
    superseded: Sequence[Row[Any]]

    @property
    def free(self) -> list[UndoStep]:
        """Steps without an obstacle."""
        return [step for step in self.steps if step.obstacle is None]


class Undo(LedgerStore):
    """Undo events."""

    async def texts(self, project_id: ProjectId, event_id: UUID) -> list[str]:
        """Return the texts that an undo would restore and that have no stored vector."""
        plan = await self._plan(project_id, event_id)
        return [s.text for s in plan.steps if s.text is not None and s.text != s.memory.text]

    async def undo(
        self,
        project_id: ProjectId,
        event_id: UUID,
        *,
        force: bool,
        vectors: Mapping[str, Vector],
        embedder: str,
        key_id: UUID | None = None,
        dry_run: bool = False,
    ) -> Undone:
        """Undo an event's effects, in one transaction, which a dry run rolls back.

        `vectors`: one for each of `texts`. With `force`, memories that cannot be restored are
        skipped. `key_id`: the caller's API key.

        Errors: NotFound; Conflict, which names every memory that prevents the undo.
        """
        for _ in range(TRIES):
            plan = await self._plan(project_id, event_id)
            _refuse(plan.event, plan.steps, force=force)
            states = _states(event_id, plan.free, vectors, embedder, key_id)
            if undone := await self._carry_out(plan, states, force=force, dry_run=dry_run):
                return undone
        raise Conflict(CHANGED_DURING_UNDO)

    async def _plan(self, project_id: ProjectId, event_id: UUID) -> UndoPlan:
        mine = and_(events.c.project_id == project_id, events.c.id == event_id)
        async with self._engine.begin() as connection:
            event = await known_row(connection, select(events).where(mine), missing=NO_SUCH_EVENT)
            steps = await _steps(connection, project_id, event_id)
            restated = await _restated(connection, project_id, event_id)
            rows = await superseded(connection, [step.memory.id for step in steps])
            checked = refuse_merged(steps, merged(rows, event))
            checked = refuse_taken_texts(checked, await _holders(connection, checked))
            return UndoPlan(event, checked, restated, rows)

    async def _carry_out(
        self, plan: UndoPlan, states: Mapping[str, Any], *, force: bool, dry_run: bool = False
    ) -> Undone | None:
        """Write the plan. Returns None if a memory or the event has changed since it was made."""
        event_id, free = plan.event.id, plan.free
        try:
            async with self._engine.connect() as connection:
                event = await _locked(connection, plan.event)
                _refuse(event, plan.steps, force=force)
                if not await _lock_memories(connection, plan):
                    return None
                changed = (await connection.scalars(statement("undo_memories"), states)).all()
                if len(changed) < len(free) or event.replays != plan.event.replays:
                    return None
                await _move_back(connection, plan)
                values = {"memory_ids": changed}
                await connection.execute(memory_statement("queue_deliveries"), values)
                shown = await show_late_statements(
                    connection, changed, plan.superseded, event_id=event_id, key_id=states["key_id"]
                )
                skipped = [step.memory.id for step in plan.steps if step.obstacle]
                gone, back = await _relations(connection, event, skipped)
                await _withdraw_suggestions(connection, event_id)
                at = await _mark(connection, event_id)
                await mark_turns_stale(connection, turn_vectors.c.event_id == event_id)
                await _show_turns(connection, event_id)
                withdrawn = {"lane_ids": [event.lane_id], "seqs": [event.seq]}
                await connection.execute(summary_statement("withdraw"), withdrawn)
                await (connection.rollback() if dry_run else connection.commit())
        except IntegrityError as error:
            if is_taken_text(error):
                return None
            raise
        replaced = {s.replaced.id for s in shown if s.replaced is not None}
        active = {s.memory.id for s in free if s.text is not None} - replaced
        return Undone(
            at=None if dry_run else at,
            gone=[step.memory.id for step in free if step.memory.id not in active],
            back=[
                *(s.memory.id for s in free if s.memory.id in active),
                *(s.shown.id for s in shown),
            ],
            skipped={step.memory.id: step.obstacle for step in plan.steps if step.obstacle},
            relations_gone=gone,
            relations_back=back,
        )


async def _locked(connection: AsyncConnection, event: Row[Any]) -> Row[Any]:
    """Lock the event's lane and the lanes it cleared, then read the event.

    Under these locks no stage writes to the lanes.
    """
    cleared = select(cleared_lanes.c.lane_id).where(cleared_lanes.c.event_id == event.id)
    ids = [event.lane_id, *(await connection.scalars(cleared)).all()]
    await lock_lanes(connection, among(lanes.c.id, ids))
    query = select(events).where(events.c.id == event.id)
    return await known_row(connection, query, missing=NO_SUCH_EVENT)


async def _mark(connection: AsyncConnection, event_id: UUID) -> datetime:
    undone = update(events).where(events.c.id == event_id).values(undone_at=func.now())
    at: datetime = (await connection.scalars(undone.returning(events.c.undone_at))).one()
    return at


async def _withdraw_suggestions(connection: AsyncConnection, event_id: UUID) -> None:
    """Close the open suggestions of the event, whose facts are withdrawn."""
    # A constant: for a parameter, the partial index of the open suggestions has no use.
    is_open = one_of(suggestions.c.state, [SuggestionState.OPEN])
    mine = and_(suggestions.c.event_id == event_id, is_open)
    await connection.execute(update(suggestions).where(mine).values(state=SuggestionState.INVALID))


def _refuse(event: Row[Any], steps: Sequence[UndoStep], *, force: bool) -> None:
    """Refuse an undo that is not possible, or, without `force`, only in part. Errors: Conflict."""
    if event.event_type == EventType.DRY_RUN:
        raise Conflict("There is nothing to undo: the event is a dry run.")
    if event.event_type == EventType.IMPORT:
        raise Conflict("An import cannot be undone: delete or erase what it brought.")
    if event.undone_at is not None:
        raise Conflict(f"This event was undone already, at {event.undone_at.isoformat()}.")
    if event.status not in FINAL:
        raise Conflict(f"This event is still {event.status}: cancel it, or wait for its end.")
    if event.status != Status.SUCCEEDED and not steps:
        raise Conflict(f"There is nothing to undo: the event {event.status} without an effect.")
    obstacles = [step.obstacle for step in steps if step.obstacle]
    if obstacles and not force:
        reasons = " ".join(obstacles)
        raise Conflict(f'{reasons} Send {{"force": true}} to undo the rest.')


async def _steps(
    connection: AsyncConnection, project_id: ProjectId, event_id: UUID
) -> list[UndoStep]:
    """Return an undo step for each memory that the event changed."""
    table = memory_history.c
    touched = select(table.memory_id).where(
        table.project_id == project_id, table.event_id == event_id
    )
    # Memories that a replay replaced are not restored.
    standing = and_(memories.c.id.in_(touched), memories.c.replaced_by.is_(None))
    query = select(*WITHOUT_VECTOR).where(standing).order_by(memories.c.id)
    current = (await connection.execute(query)).all()
    states = await states_of(connection, [row.id for row in current])
    ways = [undo_step(event_id, as_memory(row), states[row.id]) for row in current]
    copies = {row.id for row in current if row.text_hash != text_hash(row.text)}
    return [replace(step, copy=step.memory.id in copies) for step in ways if step is not None]


async def _restated(
    connection: AsyncConnection, project_id: ProjectId, event_id: UUID
) -> list[dict[str, Any]]:
    """The active memories that the event repeated, with the versions of their present states."""
    repeated = select(receipts.c.memory_id).where(
        receipts.c.event_id == event_id, receipts.c.outcome == Outcome.NOOP
    )
    query = select(memories.c.id, memories.c.version).where(
        memories.c.id.in_(repeated),
        memories.c.project_id == project_id,
        memories.c.state == "ACTIVE",
    )
    versions = {row.id: row.version for row in await connection.execute(query)}
    states = await states_of(connection, list(versions))
    return [
        {"id": key, "version": versions[key], "versions": versions_of_present(states[key])}
        for key in versions
    ]


async def _lock_memories(connection: AsyncConnection, plan: UndoPlan) -> bool:
    """Lock all memories that the plan changes, by ascending id.

    False if those that its memories have superseded are no longer the same.
    """
    ids = {step.memory.id for step in plan.free} | {row["id"] for row in plan.restated}
    ids |= {row.id for row in plan.superseded}
    await connection.execute(locked(memories, among(memories.c.id, ids)))
    rows = await superseded(connection, [step.memory.id for step in plan.steps])
    return [*map(tuple, rows)] == [*map(tuple, plan.superseded)]


async def _move_back(connection: AsyncConnection, plan: UndoPlan) -> None:
    """Take back the time of the event's statements from the memories that it repeated."""
    values = {"event_id": plan.event.id, "restated": json_rows(plan.restated)}
    await connection.execute(statement("undo_restatements"), values)


async def _holders(connection: AsyncConnection, steps: Sequence[UndoStep]) -> dict[TextKey, UUID]:
    """Return active memories that have one of the texts to restore, in the same lanes."""
    back = [step for step in steps if step.text is not None]
    hashes = [text_hash(step.text) for step in back if step.text is not None]
    query = select(memories.c.lane_id, memories.c.text_hash, memories.c.id).where(
        among(memories.c.lane_id, {step.memory.lane_id for step in back}),
        memories.c.text_hash == any_(literal(hashes, ARRAY(LargeBinary))),
        memories.c.state == "ACTIVE",
    )
    return {(row.lane_id, row.text_hash): row.id for row in await connection.execute(query)}


def _states(
    event_id: UUID,
    steps: Sequence[UndoStep],
    vectors: Mapping[str, Vector],
    embedder: str,
    key_id: UUID | None = None,
) -> dict[str, Any]:
    """Build the parameters of undo_memories. Errors: Conflict if a vector is missing."""
    rows = []
    for step in steps:
        row = _state(step)
        if step.text is not None and step.text != step.memory.text:
            if step.text not in vectors:
                raise Conflict(CHANGED_DURING_UNDO)
            row["terms"] = terms.terms(step.text)
            row["embedding"] = base64.b64encode(to_bytes(vectors[step.text])).decode()
        rows.append(row)
    return {
        "states": json_rows(rows),
        "embedder": embedder,
        "reason": f"Undone: event {event_id}.",
        "undoes": event_id,
        "key_id": key_id,
    }


def _state(step: UndoStep) -> dict[str, Any]:
    """The memory's columns after its step; a retired memory keeps all columns but its state."""
    before, to = step.memory, step.to
    visible = to is not None and to.text is not None
    after = to if to is not None and visible else before
    values = structure(after) if isinstance(after, Memory) else after.structure
    if visible:
        outcome = Outcome.UPDATE if before.state == "ACTIVE" else Outcome.ADD
    else:
        outcome = Outcome.DELETE
    return {
        "id": before.id,
        "version": before.version + 1,
        "former_version": step.former_version if visible else None,
        "outcome": outcome,
        "old_text": before.text if before.state == "ACTIVE" else None,
        "state": "ACTIVE" if visible else "RETIRED",
        "text": after.text,
        # A memory with the same text as another one has a hash of its own, and keeps it.
        "text_hash": None if step.is_same_copy else text_hash(after.text or "").hex(),
        **columns_of(after, "metadata", "expiration_date", "said_at", "valid_from"),
        **columns_of(after, "event_id", "message_ordinal"),
        "structure": values,
        "slot": current_slot(values["subject"], values["attribute"], after.text or ""),
    }


async def _relations(
    connection: AsyncConnection, event: Row[Any], skipped: Collection[UUID]
) -> tuple[int, int]:
    """Expire the event's relations; restore those it ended, unless they were stated again.

    The memories `skipped` stay as they are: so do their current relations, and none of their former
    ones is restored. A relation whose successor was ended by a later event ends then, as if the
    event had never been. The event's relations held at no time, also those that it stated as ended.
    """
    in_project = relations.c.project_id == event.project_id
    mine = and_(relations.c.event_id == event.id, in_project)
    closed = await _closed_later(connection, event)
    moves = or_(relations.c.memory_id.is_(None), ~among(relations.c.memory_id, skipped))
    current = and_(relations.c.expired_at.is_(None), moves)
    shown = or_(current, relations.c.valid_to.is_not(None))
    gone = await connection.execute(
        update(relations)
        .where(mine, shown)
        .values(
            expired_at=func.coalesce(relations.c.expired_at, func.now()),
            valid_to=None,
            ended_by=None,
        )
    )
    await connection.execute(update(relations).where(mine).values(ended_by=None))
    again = relations.alias("again")
    same = [
        again.c[name] == relations.c[name]
        for name in ("lane_id", "source_id", "relation", "destination_id")
    ]
    stored_again = exists().where(again.c.expired_at.is_(None), *same)
    for relation_id, end in closed.items():
        ended = update(relations).where(relations.c.id == relation_id)
        await connection.execute(ended.values(**end))
    back = await connection.execute(
        update(relations)
        .where(relations.c.ended_by == event.id, in_project, moves, ~stored_again)
        .values(valid_to=None, expired_at=None, ended_by=None)
    )
    return gone.rowcount, back.rowcount


async def _show_turns(connection: AsyncConnection, event_id: UUID) -> None:
    """Show the turns again that the event hid, if it was a delete_all."""
    values = {"event_id": event_id}
    shown = (await connection.scalars(statement("show_turns"), values)).all()
    if shown:
        again = {"version": summary_states.c.version + 1, "due_at": func.now()}
        of_lanes = among(summary_states.c.lane_id, shown)
        await connection.execute(update(summary_states).where(of_lanes).values(again))
        await mark_turns_stale(connection, among(turn_vectors.c.lane_id, shown))


async def _closed_later(
    connection: AsyncConnection, event: Row[Any]
) -> dict[UUID, Mapping[str, Any]]:
    """The new ends of relations that the event had ended, and whose successors have ended since.

    A successor is the relation with which the event replaced an older one. Its end counts if a
    later event caused it. An end by a person counts if both are the same relation.
    """
    successor = relations.alias("successor")
    # The rest of the relation, which the event has interrupted, or the same one that began earlier.
    same = successor.c.destination_id == relations.c.destination_id
    by_person = and_(
        same,
        successor.c.expired_at.is_not(None),
        successor.c.valid_to.is_(None),
        successor.c.ended_by.is_(None),
    )
    end = (successor.c.valid_to, successor.c.expired_at, successor.c.ended_by)
    query = (
        select(relations.c.id, *end)
        .join(
            successor,
            and_(
                successor.c.event_id == event.id,
                *(
                    successor.c[name] == relations.c[name]
                    for name in ("lane_id", "source_id", "relation")
                ),
                or_(
                    and_(
                        or_(successor.c.valid_from <= relations.c.valid_to, same),
                        successor.c.ended_by != event.id,
                    ),
                    by_person,
                ),
            ),
        )
        .where(
            relations.c.ended_by == event.id,
            relations.c.project_id == event.project_id,
            relations.c.event_id != event.id,
        )
    )
    rows = (await connection.execute(query)).all()
    return {row.id: columns_of(row, "valid_to", "expired_at", "ended_by") for row in rows}
