"""Dead letters: events that ended without an effect. The filter that lists them, and their redrive.

    FAILED | CANCELLED ──replay──► PENDING, at the end of the lane
    SUCCEEDED, its graph FAILED ──replay_graph──► PENDING, with its saved outputs

`Events.page` lists them by the filter `dead_letters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import AddOptions, EventType, FailureCode, StageName, Status
from pipeline.domain.filters import ENTITY_IDS, EventFilter
from pipeline.domain.graph.values import GraphStatus
from pipeline.domain.lanes import Hint
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.events.locking import is_event, lock_lanes_of
from pipeline.events.sql import statement
from pipeline.events.store import NO_SUCH_EVENT
from pipeline.lanes.batches import OPTIONS, omission_rows
from pipeline.ledger.filter_conditions import among, event_shape, events_matching, of_event
from pipeline.ledger.store import WakingStore
from pipeline.ledger.tables import events, lanes, messages, turn_vectors
from pipeline.seals.entries import record_replay
from pipeline.seals.keys import SealKeys
from pipeline.summaries.sql import statement as summary_statement
from pipeline.text import terms
from pipeline.turns.vectors import mark_turns_stale, reset_turn_vectors

DELETED = (
    "This event was deleted with its scope: undo the deletion first, or add the messages again."
)
# True for an event whose messages a delete_all has hidden.
_HIDDEN = (events.c.seq <= lanes.c.forgotten_seq).label("hidden")


@dataclass(frozen=True, slots=True)
class Edit:
    """Changes made with a replay: new messages with their size in tokens, and instructions."""

    messages: Sequence[Message] = ()
    tokens: int | None = None
    instructions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Events that were put back into their lanes, and the hints for these."""

    event_ids: Sequence[UUID]
    hints: Sequence[Hint]


@dataclass(frozen=True, slots=True)
class Replayable:
    """An add that ended without an effect. `said_at`: time of its first message."""

    scope: Scope
    options: AddOptions
    messages: Sequence[Message]
    said_at: datetime | None


def dead_letters(code: FailureCode | None = None) -> EventFilter:
    """The filter for events that ended without an effect: FAILED, or CANCELLED with that code."""
    ended = Status.CANCELLED if code is FailureCode.CANCELLED else Status.FAILED
    return EventFilter(statuses=(ended,), code=code)


class DeadLetters(WakingStore):
    """Redrive of dead letters. `seal_keys`: sign that a replay changed an event."""

    def __init__(self, engine: AsyncEngine, seal_keys: SealKeys, *, grace: timedelta) -> None:
        super().__init__(engine, grace=grace)
        self._seal_keys = seal_keys

    async def replay(self, project_id: ProjectId, event_id: UUID, edit: Edit) -> Replayed:
        """Put a FAILED or CANCELLED event back at the end of its lane, with the changes of `edit`.

        Errors: NotFound; Conflict for an event with another status, or deleted with its scope.
        """
        async with self._engine.begin() as connection:
            await lock_lanes_of(connection, is_event(project_id, event_id))
            if edit.messages:
                await _refuse_dry_run(connection, event_id)
            rows = await self._requeue(connection, [event_id], edit)
            if not rows:
                raise Conflict(_not_failed(await _event(connection, event_id)))
            if edit.messages:
                await _replace_messages(connection, rows[0], edit.messages)
            if edit.messages or edit.instructions:
                await record_replay(
                    connection,
                    self._seal_keys,
                    project_id,
                    lane_id=rows[0].lane_id,
                    event_id=event_id,
                    replays=rows[0].replays,
                )
        return _replayed(rows)

    async def replayable(self, project_id: ProjectId, event_id: UUID) -> Replayable:
        """Return an add that can be replayed. Errors: NotFound; Conflict for any other event."""
        ids = (lanes.c[name] for name in ENTITY_IDS)
        query = select(events, _HIDDEN, *ids).join(lanes).where(is_event(project_id, event_id))
        texts = select(messages).join(events, of_event()).where(is_event(project_id, event_id))
        async with self._engine.connect() as connection:
            event = (await connection.execute(query)).one_or_none()
            rows = (await connection.execute(texts.order_by(messages.c.ordinal))).all()
        if event is None:
            raise NotFound(NO_SUCH_EVENT)
        ended = event.status in (Status.FAILED, Status.CANCELLED)
        if not ended or event.event_type != EventType.ADD or event.erased_at is not None:
            raise Conflict(
                f"Only adds that FAILED can be replayed; this {event.event_type} is {event.status}."
            )
        if event.hidden:
            raise Conflict(DELETED)
        return Replayable(
            Scope.of(event),
            OPTIONS.validate_python(event.options),
            [Message(Role(row.role), row.content, row.name) for row in rows],
            min((row.said_at for row in rows), default=None),
        )

    async def replay_graph(self, project_id: ProjectId, event_id: UUID) -> Replayed:
        """Put a SUCCEEDED event whose graph FAILED or is PARTIAL back at the end of its lane.

        Only its graph is built again. The other events of its batch go with it.

        Errors: NotFound; Conflict for any other event.
        """
        async with self._engine.begin() as connection:
            await lock_lanes_of(connection, is_event(project_id, event_id))
            event = await _event(connection, event_id)
            if event.graph_status not in (GraphStatus.FAILED, GraphStatus.PARTIAL):
                raise Conflict(_no_failed_graph(event))
            if event.undone_at is not None:
                raise Conflict("This event was undone: its graph stays as it is.")
            if event.hidden:
                raise Conflict(DELETED)
            rows = await self._requeue_graph(connection, [event_id])
            if not rows:
                raise Conflict("What this event put out is not kept any more: add it again.")
            return _replayed(rows)

    async def replay_all(
        self, project_id: ProjectId, wanted: EventFilter, *, limit: int
    ) -> Replayed:
        """Put the oldest matching events back at the ends of their lanes, in order.

        With `wanted.graph_status`, only for their graph. Those replayed before come last, because
        their graph may have got the same status again.
        """
        shaped, values = event_shape(wanted)
        values["in_project"] = project_id
        age: ColumnElement[datetime] = events.c.created_at
        if wanted.graph_status:
            age = func.coalesce(events.c.replayed_at, events.c.created_at)
        chosen = (
            select(events.c.id)
            .join(lanes)
            .where(events_matching(shaped, private=True), ~_HIDDEN)
            .order_by(age, events.c.id)
            .limit(limit)
        )
        async with self._engine.begin() as connection:
            ids = (await connection.scalars(chosen, values)).all()
            if not ids:
                return Replayed((), ())
            await lock_lanes_of(connection, events.c.id.in_(ids))
            # Under the locks, select those that still match.
            ids = (await connection.scalars(chosen.where(events.c.id.in_(ids)), values)).all()
            if wanted.graph_status:
                return _replayed(await self._requeue_graph(connection, ids))
            return _replayed(await self._requeue(connection, ids, Edit()))

    async def _requeue(
        self, connection: AsyncConnection, ids: Sequence[UUID], edit: Edit
    ) -> Sequence[Row[Any]]:
        values = {
            "event_ids": list(ids),
            "instructions": orjson.dumps(edit.instructions).decode(),
            "tokens": edit.tokens,
            "grace": self._grace,
        }
        rows: Sequence[Row[Any]] = (await connection.execute(statement("replay"), values)).all()
        await mark_turns_stale(connection, among(turn_vectors.c.event_id, ids))
        return rows

    async def _requeue_graph(
        self, connection: AsyncConnection, ids: Sequence[UUID]
    ) -> Sequence[Row[Any]]:
        """Put events back for their graph, and withdraw the summaries of their messages.

        The messages move to the end of the lane, and the next summary reads them there.
        """
        values = {"event_ids": list(ids), "grace": self._grace}
        rows: Sequence[Row[Any]] = (
            await connection.execute(statement("replay_graph"), values)
        ).all()
        moved = {
            "lane_ids": [row.lane_id for row in rows],
            "seqs": [row.former_seq for row in rows],
        }
        await connection.execute(summary_statement("withdraw"), moved)
        return rows


async def _event(connection: AsyncConnection, event_id: UUID) -> Row[Any]:
    """The event, and if it is `hidden`."""
    query = select(events, _HIDDEN).join(lanes).where(events.c.id == event_id)
    return (await connection.execute(query)).one()


async def _refuse_dry_run(connection: AsyncConnection, event_id: UUID) -> None:
    """Refuse other messages for a dry run, which has none in its lane. Errors: Conflict."""
    kind = await connection.scalar(select(events.c.event_type).where(events.c.id == event_id))
    if kind == EventType.DRY_RUN:
        raise Conflict("A dry run keeps its messages: send another one.")


async def _replace_messages(
    connection: AsyncConnection, event: Row[Any], replacements: Sequence[Message]
) -> None:
    """Replace the event's messages. The new ones get the time of the first old one."""
    here = and_(messages.c.lane_id == event.lane_id, messages.c.seq == event.seq)
    said_at = await connection.scalar(select(func.min(messages.c.said_at)).where(here))
    await connection.execute(delete(messages).where(here))
    rows = [
        {
            "lane_id": event.lane_id,
            "seq": event.seq,
            "ordinal": ordinal,
            "role": message.role.value,
            "name": message.name,
            "content": message.content,
            "omitted": omission_rows(message.omitted) or None,
            "terms": terms.terms(message.content),
            "said_at": said_at or func.now(),
        }
        for ordinal, message in enumerate(replacements)
    ]
    await connection.execute(insert(messages), rows)
    await reset_turn_vectors(connection, event.id)


def _not_failed(event: Row[Any]) -> str:
    if event.hidden and event.status in (Status.FAILED, Status.CANCELLED):
        return DELETED
    return (
        f"Only FAILED events can be replayed; this one is {event.status}."
        ' Where only its graph has failed, send {"stage": "relate"}.'
    )


def _no_failed_graph(event: Row[Any]) -> str:
    graph = f"with a graph that {event.graph_status}" if event.graph_status else "without a graph"
    return (
        "Only SUCCEEDED events whose graph_status is FAILED or PARTIAL have a graph to replay; "
        f"this one is {event.status} {graph}."
    )


def _replayed(rows: Sequence[Row[Any]]) -> Replayed:
    return Replayed(
        [row.id for row in rows],
        [Hint(row.lane_id, row.fence, StageName.EXTRACT) for row in rows if row.woken],
    )
