"""Switch from a scope to its replay: the comparison, and the transaction that applies it.

The scope's memories are superseded, not deleted: they are retired with a reason that names the
replay, its relations expire, and both stay readable. Memories that are equal in both stay in place.
The comparison runs before any lock is taken, and again under the locks only if something has
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import Conflict
from pipeline.domain.events import FINAL, EventType, Status
from pipeline.domain.graph.values import node_id
from pipeline.domain.lanes import Hint
from pipeline.domain.rollback import PastState, effective
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.fetching import fetch
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, events, lanes, memories, relations, shadows
from pipeline.memories.history import replaced
from pipeline.memories.rows import states_of
from pipeline.replays.diff import Difference, Edge, Edited, Remembered, Store, difference
from pipeline.replays.keeping import unchanged
from pipeline.replays.sql import statement
from pipeline.replays.store import Shadow, Shadows, read, sweep_out
from pipeline.vector_index.sql import statement as vector_statement

# Columns that the comparison reads.
COMPARED = (
    memories.c.id,
    memories.c.text,
    memories.c.metadata,
    memories.c.expiration_date,
    memories.c.event_id,
    memories.c.message_ordinal,
)


@dataclass(frozen=True, slots=True)
class Switched:
    """Result of a switch.

    `gone`: ids of memories the scope no longer has; `here`: ids of memories it got; `unchanged`:
    number of memories that stayed. `behind`: number of events copied first; if it is not 0, nothing
    else was done.
    """

    gone: Sequence[UUID] = ()
    here: Sequence[UUID] = ()
    unchanged: int = 0
    behind: int = 0
    hint: Hint | None = None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Result of a comparison, valid while the stamp of the two lanes does not change.

    `lost`: people's edits that a switch would undo; `staying`: ids of its memories that stay.
    """

    stamp: tuple[int, ...]
    lost: Sequence[Edited]
    staying: frozenset[UUID]


class Switch(LedgerStore):
    """Compare a shadow with its scope, and switch it on."""

    def __init__(self, engine: AsyncEngine, shadows: Shadows) -> None:
        super().__init__(engine)
        self._shadows = shadows

    async def difference(self, project_id: ProjectId, shadow_id: UUID) -> Difference:
        """Return the changes that a switch would make now.

        Errors: NotFound; Conflict before the replay is done, or after it was switched on.
        """
        async with self._engine.connect() as connection:
            shadow = await read(connection, project_id, shadow_id)
            _refuse_early(shadow)
            return await _difference(connection, shadow)

    async def texts(self, shadow: Shadow, *, embedder: str) -> list[str]:
        """Return the texts of the shadow that have no vector of this embedder."""
        query = select(memories.c.text).where(
            memories.c.lane_id == shadow.apart.lane_id, memories.c.embedder != embedder
        )
        return [row.text for row in await fetch(self._engine, query.distinct())]

    async def switch(
        self,
        project_id: ProjectId,
        shadow_id: UUID,
        *,
        force: bool,
        vectors: Mapping[str, Vector],
        embedder: str,
    ) -> Switched:
        """Move the shadow's memories and relations to the scope, or first copy the events it lacks.

        `vectors`: one vector for each text of `texts`. Without `force`, people's edits and events
        that failed only in the replay prevent the switch.

        Errors: NotFound; Conflict if an event of the scope is running, or was undone, deleted or
        restored since the copy, or, without `force`, if something would be lost.
        """
        compared = await self._compared(project_id, shadow_id)
        async with self._engine.begin() as connection:
            shadow = await read(connection, project_id, shadow_id)
            both = lanes.c.id.in_([shadow.scope.lane_id, shadow.apart.lane_id])
            await lock_lanes(connection, both)
            shadow = await read(connection, project_id, shadow_id)
            _refuse_early(shadow)
            await _refuse_busy(connection, shadow.scope)
            await _refuse_undone(connection, shadow)
            await _refuse_restored(connection, shadow)
            copied, hint = await self._shadows.copy(connection, shadow.scope, shadow.apart)
            if copied:
                return Switched(behind=copied, hint=hint)
            current = await _lock_memories(connection, shadow)
            if await _stamp(connection, shadow) != compared.stamp:
                compared = await _compare(connection, shadow)
            if not force:
                await _refuse_loss(connection, shadow, compared.lost)
            await _embed(connection, shadow, vectors, embedder)
            return await _adopt(connection, shadow, current, compared.staying)

    async def _compared(self, project_id: ProjectId, shadow_id: UUID) -> _Comparison:
        async with self._engine.connect() as connection:
            shadow = await read(connection, project_id, shadow_id)
            _refuse_early(shadow)
            return await _compare(connection, shadow)


async def _compare(connection: AsyncConnection, shadow: Shadow) -> _Comparison:
    # Read the stamp first: a later change then gives a different stamp.
    stamp = await _stamp(connection, shadow)
    lost = (await _difference(connection, shadow)).lost
    return _Comparison(stamp, lost, await unchanged(connection, shadow))


async def _stamp(connection: AsyncConnection, shadow: Shadow) -> tuple[int, ...]:
    """Return numbers that change with every change of the compared rows: versions only increase."""
    both = memories.c.lane_id.in_([shadow.scope.lane_id, shadow.apart.lane_id])
    query = select(
        select(func.count()).where(both).scalar_subquery(),
        select(func.coalesce(func.sum(memories.c.version), 0)).where(both).scalar_subquery(),
        select(func.count(events.c.undone_at))
        .where(events.c.lane_id == shadow.scope.lane_id)
        .scalar_subquery(),
        lanes.c.accepted_seq,
        lanes.c.forgotten_seq,
    ).where(lanes.c.id == shadow.scope.lane_id)
    row = (await connection.execute(query)).one()
    return tuple(row)


async def _lock_memories(connection: AsyncConnection, shadow: Shadow) -> list[UUID]:
    """Lock the memories of both lanes. Returns the ids of the scope's current ones."""
    both = memories.c.lane_id.in_([shadow.scope.lane_id, shadow.apart.lane_id])
    columns = (memories.c.id, memories.c.lane_id, memories.c.state)
    rows = await connection.execute(locked(memories, both, *columns))
    live = (shadow.scope.lane_id, "ACTIVE")
    return [row.id for row in rows if (row.lane_id, row.state) == live]


def _refuse_early(shadow: Shadow) -> None:
    """Refuse a switch before the replay is done, or after it was switched on. Errors: Conflict."""
    if shadow.switched_at is not None:
        raise Conflict(f"This replay was switched on already, {shadow.switched_at.isoformat()}.")
    if not shadow.done:
        total = sum(shadow.counts.values())
        ended = sum(shadow.counts[status] for status in FINAL)
        raise Conflict(f"This replay is still under way: {ended} of {total} events have ended.")


async def _refuse_busy(connection: AsyncConnection, scope: Scope) -> None:
    """Refuse a switch while events of the scope have not ended: the shadow lacks them.

    Errors: Conflict.
    """
    under_way = await connection.scalar(
        select(func.count())
        .select_from(events.join(lanes))
        .where(lanes.c.id == scope.lane_id, events.c.seq > lanes.c.settled_seq)
        .where(events.c.status.not_in(FINAL))
    )
    if under_way:
        raise Conflict(
            f"{under_way} events of these ids are under way, which the replay lacks:"
            " ask again once they have ended."
        )


async def _refuse_undone(connection: AsyncConnection, shadow: Shadow) -> None:
    """Refuse a switch if an event was undone or deleted after it was copied. Errors: Conflict.

    The switch would bring its memories back.
    """
    copies, ours = events.alias("copies"), events.alias("ours")
    undone = (
        select(ours.c.id)
        .join(copies, copies.c.copy_of == ours.c.id)
        .join(lanes, lanes.c.id == ours.c.lane_id)
        .where(
            copies.c.project_id == shadow.id,
            or_(ours.c.undone_at.is_not(None), ours.c.seq <= lanes.c.forgotten_seq),
        )
    )
    why = "was undone since, or deleted with its scope, and the replay holds what it did"
    await _refuse_if_any(connection, undone, why)


async def _refuse_restored(connection: AsyncConnection, shadow: Shadow) -> None:
    """Refuse a switch if an undo restored an event that the copy left out as deleted.

    Errors: Conflict.
    """
    copies, ours = events.alias("copies"), events.alias("ours")
    copied = exists().where(copies.c.project_id == shadow.id, copies.c.copy_of == ours.c.id)
    restored = (
        select(ours.c.id)
        .join(lanes, lanes.c.id == ours.c.lane_id)
        .join(shadows, shadows.c.id == shadow.id)
        .where(
            ours.c.lane_id == shadow.scope.lane_id,
            ours.c.event_type == EventType.ADD,
            ours.c.seq.between(lanes.c.forgotten_seq + 1, shadows.c.copied_seq),
            ours.c.undone_at.is_(None),
            ours.c.status != Status.CANCELLED,
            ~copied,
        )
    )
    why = "was deleted with its scope when this replay began and has been brought back since"
    await _refuse_if_any(connection, restored, why)


async def _refuse_if_any(connection: AsyncConnection, query: Select[UUID], why: str) -> None:
    """Refuse a switch if the query has an event. Errors: Conflict."""
    if (event_id := await connection.scalar(query.limit(1))) is not None:
        raise Conflict(f"Event {event_id} {why}: discard the replay and begin another.")


async def _refuse_loss(connection: AsyncConnection, shadow: Shadow, lost: Sequence[Edited]) -> None:
    """Refuse a switch that would lose people's edits or successful events. Errors: Conflict."""
    reasons = [
        f"Memory {edit.memory.id} was {'deleted' if edit.deleted else 'edited or restored'}"
        " by a person."
        for edit in lost
    ]
    if failed := await _newly_failed(connection, shadow):
        reasons.append(f"{failed} events that SUCCEEDED have FAILED in the replay.")
    if reasons:
        raise Conflict(f'{" ".join(reasons)} Send {{"force": true}} to switch all the same.')


async def _newly_failed(connection: AsyncConnection, shadow: Shadow) -> int:
    """Count the events that succeeded in the scope and failed in the shadow."""
    copies, ours = events.alias("copies"), events.alias("ours")
    query = (
        select(func.count())
        .select_from(copies)
        .join(ours, ours.c.id == copies.c.copy_of)
        .where(
            copies.c.project_id == shadow.id,
            copies.c.status == Status.FAILED,
            ours.c.status == Status.SUCCEEDED,
        )
    )
    return await connection.scalar(query) or 0


async def _difference(connection: AsyncConnection, shadow: Shadow) -> Difference:
    live = await _store(connection, shadow.scope)
    there = await _store(connection, shadow.apart)
    return difference(live, there, await _edits(connection, shadow.scope))


async def _store(connection: AsyncConnection, scope: Scope) -> Store:
    """Read a scope's memories and relations. A copied event has the id of its original."""
    its_event = and_(
        events.c.id == memories.c.event_id, events.c.project_id == memories.c.project_id
    )
    query = (
        select(*COMPARED, events.c.copy_of)
        .join(events, its_event, isouter=True)
        .where(memories.c.lane_id == scope.lane_id, memories.c.state == "ACTIVE")
        .order_by(events.c.seq, memories.c.message_ordinal, memories.c.text)
    )
    source, destination = entities.alias(), entities.alias()
    edges = (
        select(
            source.c.name_key.label("source"),
            relations.c.relation,
            destination.c.name_key.label("destination"),
        )
        .join(source, source.c.id == relations.c.source_id)
        .join(destination, destination.c.id == relations.c.destination_id)
        .where(relations.c.lane_id == scope.lane_id, relations.c.expired_at.is_(None))
    )
    rows = (await connection.execute(query)).all()
    remembered = [_remembered(row, row.copy_of or row.event_id) for row in rows]
    return Store(
        remembered, frozenset(Edge(**row._asdict()) for row in await connection.execute(edges))
    )


async def _edits(connection: AsyncConnection, scope: Scope) -> list[Edited]:
    """Return memories whose last change a person made and nothing has overwritten or undone.

    Such changes are edits, deletes, and undos that restored an event no replay processes again.
    """
    mine = and_(memories.c.lane_id == scope.lane_id, memories.c.replaced_by.is_(None))
    query = select(*COMPARED).where(mine).order_by(memories.c.updated_at, memories.c.id)
    rows = (await connection.execute(query)).all()
    states = await states_of(connection, [row.id for row in rows])
    adds = await _adds(connection, scope)
    edits = []
    for row in rows:
        last = next(reversed(effective(states[row.id])), None)
        if last is not None and _by_person(last, adds):
            edits.append(Edited(_remembered(row, row.event_id), deleted=last.text is None))
    return edits


def _by_person(state: PastState, adds: Mapping[UUID, bool]) -> bool:
    if state.event_id is None or state.event_id not in adds:
        return True
    return state.text is not None and not adds[state.event_id]


async def _adds(connection: AsyncConnection, scope: Scope) -> dict[UUID, bool]:
    """Map each add of the scope to true if a replay processes it."""
    replayed = and_(
        events.c.seq > lanes.c.forgotten_seq,
        events.c.undone_at.is_(None),
        events.c.status != Status.CANCELLED,
    )
    query = (
        select(events.c.id, replayed.label("replayed"))
        .join(lanes, lanes.c.id == events.c.lane_id)
        .where(events.c.lane_id == scope.lane_id, events.c.event_type == EventType.ADD)
    )
    return {row.id: row.replayed for row in await connection.execute(query)}


def _remembered(row: Any, event_id: UUID | None) -> Remembered:
    return Remembered(
        row.id, row.text, row.metadata, row.expiration_date, event_id, row.message_ordinal
    )


async def _embed(
    connection: AsyncConnection, shadow: Shadow, vectors: Mapping[str, Vector], embedder: str
) -> None:
    """Store vectors of the scope's own embedder for memories that another embedder embedded."""
    foreign = and_(memories.c.lane_id == shadow.apart.lane_id, memories.c.embedder != embedder)
    query = select(memories.c.id, memories.c.version, memories.c.text).where(foreign)
    rows = [row for row in await connection.execute(query) if row.text in vectors]
    values = {
        "ids": [row.id for row in rows],
        "versions": [row.version for row in rows],
        "vectors": [to_bytes(vectors[row.text]) for row in rows],
        "embedder": embedder,
    }
    await connection.execute(vector_statement("replace_vectors", table=memories.name), values)


async def _adopt(
    connection: AsyncConnection, shadow: Shadow, current: Sequence[UUID], staying: frozenset[UUID]
) -> Switched:
    """Apply the switch under the locks. The order matters.

    The scope's replaced memories are retired first, so that the active ones left are exactly those
    that the shadow has, too; these are merged before the shadow's rows move over.
    """
    gone = [memory_id for memory_id in current if memory_id not in staying]
    values = {
        "shadow_id": shadow.id,
        "shadow_lane_id": shadow.apart.lane_id,
        "project_id": shadow.scope.project_id,
        "lane_id": shadow.scope.lane_id,
        "reason": replaced(shadow.id),
        "gone": gone,
    }
    await connection.execute(statement("protect_copies"), values)
    await connection.execute(statement("replace_memories"), values)
    await connection.execute(statement("merge_suggestions"), values)
    merged = (await connection.execute(statement("merge_kept"), values)).all()
    await connection.execute(statement("merge_conflicts"), values)
    values |= {
        "kept_theirs": [row.theirs for row in merged],
        "kept_ours": [row.ours for row in merged],
    }
    here = (await connection.scalars(statement("adopt_memories"), values)).all()
    await _expire(connection, shadow.scope)
    await _name(connection, shadow)
    await connection.execute(statement("adopt_relations"), values)
    await connection.execute(statement("adopt_events"), values)
    await sweep_out(connection, shadow)
    await connection.execute(
        update(shadows).where(shadows.c.id == shadow.id).values(switched_at=func.now())
    )
    return Switched(gone=gone, here=here, unchanged=len(current) - len(gone))


async def _expire(connection: AsyncConnection, scope: Scope) -> None:
    """Expire the relations of the scope's graph; no undo brings them back."""
    ours = relations.c.lane_id == scope.lane_id
    await connection.execute(update(relations).where(ours).values(ended_by=None))
    current = and_(ours, relations.c.expired_at.is_(None))
    await connection.execute(update(relations).where(current).values(expired_at=func.now()))


async def _name(connection: AsyncConnection, shadow: Shadow) -> None:
    """Insert an entity into the scope for each entity of the shadow, with the id it has there.

    Entities that the scope has keep their merges.
    """
    query = select(entities).where(entities.c.lane_id == shadow.apart.lane_id)
    scope = shadow.scope
    rows = (await connection.execute(query)).all()
    ids = {row.id: node_id(scope, row.name_key) for row in rows}
    met = [
        row._asdict()
        | {
            "id": ids[row.id],
            "project_id": scope.project_id,
            "lane_id": scope.lane_id,
            "merged_into": ids.get(row.merged_into),
            "root_id": ids.get(row.root_id),
            "past_merges": None,
        }
        for row in rows
    ]
    if met:
        await connection.execute(insert(entities).on_conflict_do_nothing(), met)
