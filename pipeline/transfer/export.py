"""Export: everything of a project, or of some of its owners, as lines, in one snapshot.

The order of the lines depends only on what is stored: owners by kind and id, then the scopes by
their ids, each with its events, memories, entities, relations, summaries and conflicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Table,
    TableValuedAlias,
    Uuid,
    and_,
    column,
    func,
    literal,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline import __version__
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.filter_conditions import among, one_of, shown
from pipeline.ledger.row_values import grouped
from pipeline.ledger.tables import (
    conflict_members,
    conflicts,
    entities,
    events,
    feedback,
    graph_receipts,
    lanes,
    memories,
    memory_history,
    messages,
    owners,
    past_states,
    receipts,
    relations,
    summaries,
)
from pipeline.text.equality import text_hash
from pipeline.transfer.records import (
    EVENT_TYPES,
    FORMAT,
    VERSION,
    ConflictMember,
    ConflictRecord,
    EntityRecord,
    EventRecord,
    FeedbackEntry,
    GraphReceiptPart,
    HistoryPart,
    MemoryState,
    OwnerRecord,
    PastEnd,
    PastMerge,
    PastStatePart,
    ReceiptPart,
    RelationRecord,
    SaidMessage,
    SummaryRecord,
)

# Fields with objects of their own.
NESTED = frozenset(
    {
        *("messages", "receipt", "graph_receipt", "history", "past_states"),
        *("past_merges", "past_ends", "members"),
    }
)
# Rows of one read: their texts fit easily into memory.
PART = 200
# Scopes that are read together, their events, and most lines of these.
TOGETHER, EVENTS_TOGETHER, MOST_TOGETHER = 100, 1_000, 5_000
# A client that reads nothing for so long ends the export: its snapshot holds back the clean-up of
# all tables.
IDLE_LIMIT = "60s"
KINDS = ("user_id", "agent_id", "app_id", "run_id")
Rows = Sequence[Row[Any]]
# A lane, and a line of its scope with the kind.
Line = tuple[UUID, str, dict[str, Any]]
# The lines of some rows, in their order; None for one that is left out.
Lines = Sequence[dict[str, Any] | None]


class Export:
    """Reads of whole projects."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="REPEATABLE READ")

    async def lines(
        self, project_id: ProjectId, pinned: Mapping[str, str]
    ) -> AsyncGenerator[bytes]:
        """Yield the lines of the scopes with the `pinned` ids; of all scopes, if there are none.

        Temporary runs are left out, and events that have not ended.
        """
        numbers = Counter[str]()
        async with self._engine.connect() as connection:
            limit = f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_LIMIT}'"
            await connection.execute(text(limit))
            now: datetime = (await connection.execute(select(func.now()))).scalar_one()
            header = {"format": FORMAT, "version": VERSION, "memlane": __version__}
            yield _line("header", header | {"exported_at": now})
            async for kind, row in self._rows(connection, project_id, pinned):
                numbers[kind] += 1
                yield _line(kind, row)
        yield _line("end", {"lines": dict(sorted(numbers.items()))})

    async def _rows(
        self, connection: AsyncConnection, project_id: ProjectId, pinned: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """All owners, and the rows of all scopes, each with its kind."""
        async for row in _owners(connection, project_id, pinned):
            yield "owner", row
        ids = [func.coalesce(lanes.c[name], "").collate("C") for name in KINDS]
        own = [lanes.c[name] == value for name, value in pinned.items()]
        columns = (lanes.c.id, lanes.c.accepted_seq, lanes.c.forgotten_seq)
        query = select(*columns, *(lanes.c[name] for name in KINDS))
        query = query.where(lanes.c.project_id == project_id, shown(lanes), *own).order_by(*ids)
        for group in _groups((await connection.execute(query)).all()):
            scopes = {lane.id: {name: getattr(lane, name) for name in KINDS} for lane in group}
            forgotten = {lane.id: lane.forgotten_seq for lane in group}
            async for lane_id, kind, row in _ScopeRows(connection, forgotten).every():
                yield kind, scopes[lane_id] | row


def _groups(rows: Rows) -> Iterator[Rows]:
    """Divide lanes into groups that are read together: small ones, or a single one."""
    group: list[Row[Any]] = []
    number = 0
    for lane in rows:
        if group and (len(group) == TOGETHER or number + lane.accepted_seq > EVENTS_TOGETHER):
            yield group
            group, number = [], 0
        group.append(lane)
        number += lane.accepted_seq
    if group:
        yield group


async def _owners(
    connection: AsyncConnection, project_id: ProjectId, pinned: Mapping[str, str]
) -> AsyncIterator[dict[str, Any]]:
    """The registered owners, without temporary runs; with pinned ids, only those."""
    table = owners.c
    order = (table.kind.collate("C"), table.id.collate("C"))
    hidden = select(lanes.c.run_id).where(lanes.c.project_id == project_id, lanes.c.temporary)
    shown_run = ~and_(table.kind == "run", table.id.in_(hidden))
    base = select(owners).where(table.project_id == project_id, shown_run).order_by(*order)
    if pinned:
        keys = [(name.removesuffix("_id"), value) for name, value in pinned.items()]
        base = base.where(tuple_(table.kind, table.id).in_(keys))
    query = base.limit(PART)
    while rows := (await connection.execute(query)).all():
        for row in rows:
            yield _fields(row, OwnerRecord)
        last = (rows[-1].kind, rows[-1].id)
        query = base.where(tuple_(*order) > tuple_(*last)).limit(PART)


@dataclass(frozen=True, slots=True)
class _ScopeRows:
    """Rows of some scopes, in the order of the lines.

    `forgotten`: the ids of the lanes in this order, each with its `forgotten_seq`.
    """

    connection: AsyncConnection
    forgotten: Mapping[UUID, int]

    async def every(self) -> AsyncIterator[Line]:
        """The rows of all kinds, each with its lane and kind.

        Those of several scopes are read together. If one of these has many rows of a kind, each
        scope is read alone.
        """
        if len(self.forgotten) == 1:
            async for line in self._by_kind():
                yield line
            return
        lines = await self._few()
        for lane_id, seq in self.forgotten.items():
            if lines is not None:
                for line in lines[lane_id]:
                    yield line
            else:
                async for line in _ScopeRows(self.connection, {lane_id: seq}).every():
                    yield line

    async def _few(self) -> Mapping[UUID, list[Line]] | None:
        """The lines of all scopes by their lanes; None if they are more than MOST_TOGETHER."""
        lines = defaultdict[UUID, list[Line]](list)
        number = 0
        async for line in self._by_kind():
            lines[line[0]].append(line)
            if (number := number + 1) > MOST_TOGETHER:
                return None
        return lines

    async def _by_kind(self) -> AsyncIterator[Line]:
        """The rows of all scopes, kind by kind."""
        for kind, table, order, rows_of in (
            ("event", events, ("seq", "id"), self._events),
            ("memory", memories, ("created_at", "id"), self._memories),
            ("entity", entities, ("created_at", "name_key"), self._entities),
            ("relation", relations, ("created_at", "id"), self._relations),
            ("summary", summaries, ("version",), self._summaries),
            ("conflict", conflicts, ("created_at", "id"), self._conflicts),
        ):
            async for part in self._parts(table, *order):
                for row, line in zip(part, await rows_of(part), strict=True):
                    if line is not None:
                        yield row.lane_id, kind, line

    async def _parts(self, table: Table, *order: str) -> AsyncIterator[Rows]:
        """Rows of a table, up to PART at a time, by lane and this order."""
        columns = [table.c[name] for name in ("lane_id", *order)]
        base = select(table).where(among(table.c.lane_id, list(self.forgotten)))
        if table is events:
            base = base.where(
                one_of(table.c.event_type, EVENT_TYPES),
                table.c.completed_at.is_not(None),
                table.c.erased_at.is_(None),
            )
        query = base.order_by(*columns).limit(PART)
        while rows := (await self.connection.execute(query)).all():
            yield rows
            if len(rows) < PART:
                return
            last = tuple_(*(getattr(rows[-1], column.name) for column in columns))
            query = base.where(tuple_(*columns) > last).order_by(*columns).limit(PART)

    async def _events(self, rows: Rows) -> Lines:
        """Events with their messages and receipts. Messages that a delete_all hid are left out."""
        ids = [row.id for row in rows]
        turns = await self._messages(rows)
        lines = await self._of(receipts, "event_id", ids, "ordinal")
        graph = await self._of(graph_receipts, "event_id", ids, "ordinal")
        return [
            _fields(row, EventRecord)
            | {
                "messages": [_fields(turn, SaidMessage) for turn in turns[row.id]],
                "receipt": [_fields(line, ReceiptPart) for line in lines[row.id]],
                "graph_receipt": [_fields(line, GraphReceiptPart) for line in graph[row.id]],
            }
            for row in rows
        ]

    async def _messages(self, rows: Rows) -> Mapping[UUID, list[Row[Any]]]:
        """The messages of events, by the id of the event."""
        seqs = ((row.lane_id, row.seq) for row in rows if row.seq > self.forgotten[row.lane_id])
        query = select(messages).join(*_at(seqs, messages))
        query = query.order_by(messages.c.seq, messages.c.ordinal)
        ids = {(row.lane_id, row.seq): row.id for row in rows}
        groups = defaultdict[UUID, list[Row[Any]]](list)
        for row in (await self.connection.execute(query)).all():
            groups[ids[row.lane_id, row.seq]].append(row)
        return groups

    async def _memories(self, rows: Rows) -> Lines:
        """Memories with their history, past states and feedback."""
        ids = [row.id for row in rows]
        history = await self._of(memory_history, "memory_id", ids, "version")
        passed = await self._of(past_states, "memory_id", ids, "replaced_at", "version", "id")
        rated = await self._of(feedback, "memory_id", ids, "memory_id")
        return [
            _fields(row, MemoryState)
            | {
                "id": row.id,
                "copy_of_text": bytes(row.text_hash) != text_hash(row.text) or None,
                "forgotten_at": row.forgotten_at,
                "history": [_fields(entry, HistoryPart) for entry in history[row.id]],
                "past_states": [_fields(state, PastStatePart) for state in passed[row.id]],
                "feedback": next((_fields(f, FeedbackEntry) for f in rated[row.id]), None),
            }
            for row in rows
        ]

    async def _entities(self, rows: Rows) -> Lines:
        """Entities. Those they are merged into are named by key."""
        past = {row.id: [_past_merge(merge) for merge in row.past_merges or ()] for row in rows}
        ids = [id_ for row in rows for id_ in (row.merged_into, row.root_id) if id_]
        keys = await self._keys(
            [*ids, *(merge["merged_into"] for merges in past.values() for merge in merges)]
        )
        return [
            _fields(row, EntityRecord)
            | {
                "key": row.name_key,
                "merged_into": keys.get(row.merged_into),
                "root": keys.get(row.root_id),
                "past_merges": [
                    PastMerge(**merge | {"merged_into": keys[merge["merged_into"]]}).model_dump()
                    for merge in past[row.id]
                    if merge["merged_into"] in keys
                ],
            }
            for row in rows
        ]

    async def _relations(self, rows: Rows) -> Lines:
        """Relations between entities, which are named by key."""
        keys = await self._keys(
            [id_ for row in rows for id_ in (row.source_id, row.destination_id)]
        )
        return [
            _fields(row, RelationRecord)
            | {
                "source": keys[row.source_id],
                "destination": keys[row.destination_id],
                "past_ends": [PastEnd(**end).model_dump() for end in row.past_ends or ()],
            }
            for row in rows
        ]

    async def _keys(self, ids: Sequence[UUID]) -> Mapping[UUID, str]:
        """The keys of entities by their ids."""
        query = select(entities.c.id, entities.c.name_key).where(among(entities.c.id, ids))
        return {row.id: row.name_key for row in (await self.connection.execute(query)).all()}

    async def _summaries(self, rows: Rows) -> Lines:
        """The versions of the current summary. Each names the last event that it has read."""
        seqs = ((row.lane_id, row.until_seq) for row in rows)
        query = select(events.c.lane_id, events.c.seq, events.c.id).join(*_at(seqs, events))
        query = query.where(one_of(events.c.event_type, EVENT_TYPES))
        ended = (await self.connection.execute(query)).all()
        ends = {(row.lane_id, row.seq): row.id for row in ended}
        return [
            _fields(row, SummaryRecord) | {"until_event": ends[row.lane_id, row.until_seq]}
            if row.after_seq == self.forgotten[row.lane_id] and (row.lane_id, row.until_seq) in ends
            else None
            for row in rows
        ]

    async def _conflicts(self, rows: Rows) -> Lines:
        """Conflicts with their statements."""
        ids = [row.id for row in rows]
        members = await self._of(conflict_members, "conflict_id", ids, "memory_id", "against_id")
        return [
            _fields(row, ConflictRecord)
            | {
                "members": [
                    _fields(member, ConflictMember) | {"text_hash": member.text_hash.hex()}
                    for member in members[row.id]
                ]
            }
            for row in rows
        ]

    async def _of(
        self, table: Table, name: str, ids: Sequence[UUID], *order: str
    ) -> Mapping[Any, list[Row[Any]]]:
        """Rows of a table by the id of their event, memory or conflict, in order."""
        query = select(table).where(among(table.c[name], ids))
        query = query.order_by(*(table.c[column] for column in order))
        return grouped(await self.connection.execute(query), name)


def _at(
    seqs: Iterable[tuple[UUID, int]], table: Table
) -> tuple[TableValuedAlias, ColumnElement[bool]]:
    """A join with the rows of a table that are in these lanes, with these seqs."""
    pairs = list(seqs)
    arrays = func.unnest(
        literal([lane_id for lane_id, _ in pairs], ARRAY(Uuid)),
        literal([seq for _, seq in pairs], ARRAY(BigInteger)),
    ).table_valued(column("lane_id", Uuid), column("seq", BigInteger))
    at = arrays.render_derived(name="at")
    return at, and_(table.c.lane_id == at.c.lane_id, table.c.seq == at.c.seq)


class _Object(dict[str, Any]):
    """Fields of the schema; a plain dict is a value, such as metadata, whose nulls stay."""


def _fields(row: Row[Any], record: type[Any]) -> _Object:
    """The columns of a row that the schema names."""
    return _Object({name: getattr(row, name) for name in record.model_fields if hasattr(row, name)})


def _past_merge(merge: Mapping[str, Any]) -> dict[str, Any]:
    """A past merge with the id of the other entity."""
    return {**merge, "merged_into": UUID(merge["merged_into"])}


def _line(kind: str, row: Mapping[str, Any]) -> bytes:
    """A line of the file, without the fields that are null or empty."""
    return orjson.dumps({"type": kind, **_without_nulls(row)}, default=str) + b"\n"


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in row.items():
        if name in NESTED and isinstance(value, list):
            fields |= {name: [_without_nulls(item) for item in value]} if value else {}
        elif value is not None:
            fields[name] = _without_nulls(value) if isinstance(value, _Object) else value
    return fields
