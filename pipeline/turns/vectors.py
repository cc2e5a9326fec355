"""Vectors of turns: stale from the acceptance on, computed and written after the events.

The text of a turn is in `messages`, its vector here. The index uses an id of its own for each
vector, which `keys` translates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from itertools import accumulate
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    Uuid,
    and_,
    any_,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.messages import Role
from pipeline.domain.passages import PassageKey
from pipeline.domain.scope import Scope
from pipeline.domain.vectors import NO_VECTOR, from_bytes
from pipeline.ledger.fetching import execute, fetch, fetch_value
from pipeline.ledger.filter_conditions import among, message_at, of_event
from pipeline.ledger.locks import locked
from pipeline.ledger.tables import events, lanes, messages, rebuilt, turn_vectors, vector_indexes
from pipeline.text.speakers import unsigned
from pipeline.turns.sql import statement
from pipeline.turns.store import not_withdrawn, uuids
from pipeline.vector_index.own_collections import Position
from pipeline.vector_index.projections import Projection, VectorSource

# Characters of a turn that are embedded: more than most models read, and less than any rejects.
MOST_CHARACTERS = 4_000
# Lanes of one statement while a scope is read page by page: of their ids, and of their events.
LANES_READ, LANES_AT_ONCE = 20_000, 20

_message = message_at(turn_vectors.c.ordinal)
_says_something = and_(
    messages.c.role != Role.SYSTEM,
    messages.c.role != Role.TOOL,
    messages.c.content.regexp_match("[^[:space:]]"),
)
_wanted = and_(not_withdrawn(), _says_something)


class TurnVectors(VectorSource):
    """Turns as a source of the vector index; see `pipeline.vector_index.projections`."""

    kind, table = "turns", "turn_vectors"

    async def keys(self, ids: Sequence[UUID]) -> dict[UUID, PassageKey]:
        """Return the turn of each of these ids; ids without a turn are left out."""
        rows = await self._direct.rows(_KEYS, {"ids": list(ids)})
        return {key: PassageKey(event_id, ordinal) for key, event_id, ordinal in rows}

    # Methods of projections.Source

    async def count(self) -> int:
        """Count the turns that have, or should have, a vector."""
        query = (
            select(func.count())
            .select_from(turn_vectors)
            .join(events, events.c.id == turn_vectors.c.event_id)
            .join(lanes, lanes.c.id == turn_vectors.c.lane_id)
            .join(messages, _message)
            .where(_wanted)
        )
        return int(await fetch_value(self._single, query))

    async def unprojected(
        self, ids: Iterable[UUID] | None = None, *, stale_for_s: float, limit: int
    ) -> list[Projection]:
        """Return stale turns, the oldest first; with `ids`, all stale turns of these events.

        `stale_for_s`: only turns accepted at least this many seconds ago.
        """
        query = _projections().where(
            turn_vectors.c.owed,
            turn_vectors.c.accepted_at <= func.now() - timedelta(seconds=stale_for_s),
        )
        if ids is not None:
            return await self._projections_of(query.where(among(turn_vectors.c.event_id, ids)))
        return await self._projections_of(query.order_by(turn_vectors.c.accepted_at).limit(limit))

    async def unbuilt(self, after: UUID, *, limit: int) -> list[Projection]:
        """Return turns after this id that the index under construction lacks or has outdated."""
        version = turn_vectors.c.version
        built = exists().where(
            rebuilt.c.memory_id == turn_vectors.c.id, rebuilt.c.version == version
        )
        return await self._projections_of(_page(after, limit).where(~built))

    async def following(self, after: UUID, *, limit: int) -> list[Projection]:
        """Return embedded turns with ids after this one, in the order of ids."""
        embedded = turn_vectors.c.embedder.is_not(None)
        return await self._projections_of(_page(after, limit).where(embedded))

    async def mark_foreign_stale(self, embedder: str) -> None:
        """Mark turns with vectors of another embedder as stale."""
        query = update(turn_vectors).where(turn_vectors.c.embedder.is_distinct_from(embedder))
        await execute(self._single, query.values(projected_version=0))

    async def foreign(self, index: str, embedder: str, *, limit: int) -> list[Projection]:
        """Return stale turns with vectors of another embedder, if `index` is the live one."""
        live = exists().where(vector_indexes.c.state == "LIVE", vector_indexes.c.name == index)
        # Written as two ranges, so that the index on (embedder) is used.
        other = or_(turn_vectors.c.embedder < embedder, turn_vectors.c.embedder > embedder)
        return await self._projections_of(
            _projections().where(turn_vectors.c.owed, other, TURN.c.wanted, live).limit(limit)
        )

    async def has(self, project_id: UUID, pins: Mapping[str, str], *, rows: int) -> bool:
        """Tell if there are `rows` turns with these entity ids, in as many lanes at most."""
        values = {"project_id": project_id, "stop": rows, **pins}
        [row] = await self._direct.rows(_counted(*pins), values)
        return int(row.count) >= rows

    async def pages(
        self, project_id: UUID, pins: Mapping[str, str], after: Position | None, *, limit: int
    ) -> AsyncIterator[tuple[list[Projection], Position]]:
        """Yield embedded turns with these entity ids, in the order of lanes and events."""
        position = after or Position(UUID(int=0), seq=0)
        async for lane_ids in self._lanes(project_id, pins, position.id):
            values = {"lane_ids": lane_ids, "limit": limit}
            while following := await self._direct.rows(
                statement("next_events"), values | {"lane_id": position.id, "seq": position.seq}
            ):
                some = _first(following, turns=limit)
                position = Position(some[-1].lane_id, seq=some[-1].seq)
                ids = {"event_ids": [row.id for row in some]}
                rows = await fetch(self._single, _EMBEDDED_OF_EVENTS, ids)
                if rows:
                    yield [_as_projection(row) for row in rows], position

    async def _lanes(
        self, project_id: UUID, pins: Mapping[str, str], first: UUID
    ) -> AsyncIterator[list[UUID]]:
        """Yield the ids of the lanes with these entity ids, from `first` on, a few at a time."""
        while True:
            values = {"project_id": project_id, "first": first, "limit": LANES_READ, **pins}
            lane_ids = [row.id for row in await fetch(self._single, _page_of_lanes(*pins), values)]
            for start in range(0, len(lane_ids), LANES_AT_ONCE):
                yield lane_ids[start : start + LANES_AT_ONCE]
            if len(lane_ids) < LANES_READ:
                return
            first = UUID(int=lane_ids[-1].int + 1)

    @staticmethod
    def recorded(lane_ids: Sequence[UUID], embedder: str, *, stale: bool) -> Select[Any]:
        """Query for the numbers of turns by lane, with or without stale ones, none withdrawn."""
        table = turn_vectors.c
        query = (
            select(table.lane_id, func.count().label("rows"))
            .join_from(turn_vectors, TURN, true())
            .where(among(table.lane_id, lane_ids), table.embedder == embedder, TURN.c.wanted)
        )
        if not stale:
            query = query.where(table.projected_version != 0)
        return query.group_by(table.lane_id)

    @staticmethod
    @cache
    def stale(*ids: str) -> Select[Any]:
        """Statement for the stale vectors of the scopes with these entity ids, newest first.

        Includes turns of undone events: like other wrong hits of an index, the search drops them.
        """
        table = turn_vectors.c
        return (
            select(table.id, table.embedding)
            .join(lanes, lanes.c.id == table.lane_id)
            .where(table.owed, table.embedder == bindparam("embedder"))
            .where(*(lanes.c[name] == bindparam(name) for name in ids))
            .order_by(table.accepted_at.desc())
            .limit(bindparam("limit", type_=Integer))
        )

    async def _projections_of(self, query: Select[Any]) -> list[Projection]:
        return [_as_projection(row) for row in await fetch(self._single, query)]


def _first(following: Sequence[Row[Any]], *, turns: int) -> Sequence[Row[Any]]:
    """Return the first events with up to `turns` turns together, but at least one event."""
    totals = accumulate(row.turns for row in following)
    return following[: max(1, sum(total <= turns for total in totals))]


def _with_pins(*pins: str) -> list[ColumnElement[bool]]:
    """The conditions on lanes with these entity ids."""
    named = (lanes.c[name] == bindparam(name) for name in pins)
    return [lanes.c.project_id == bindparam("project_id"), *named]


@cache
def _counted(*pins: str) -> Select[Any]:
    """The number of turns with these entity ids, up to `stop`, in up to `stop` lanes."""
    stop = bindparam("stop", type_=Integer)
    some = select(lanes.c.id).where(*_with_pins(*pins)).limit(stop).subquery("some")
    turns = (
        select(literal(1).label("turn"))
        .select_from(events.join(turn_vectors, turn_vectors.c.event_id == events.c.id))
        .where(events.c.lane_id == some.c.id)
        .limit(stop)
        .lateral("turns")
    )
    counted = select(turns.c.turn).select_from(some.join(turns, true())).limit(stop)
    return select(func.count().label("count")).select_from(counted.subquery("counted"))


@cache
def _page_of_lanes(*pins: str) -> Select[Any]:
    """Lanes with these entity ids, from the id `first` on."""
    here = lanes.c.id >= bindparam("first", type_=Uuid)
    page = select(lanes.c.id).where(*_with_pins(*pins), here).order_by(lanes.c.id)
    return page.limit(bindparam("limit", type_=Integer))


_KEYS = select(turn_vectors.c.id, turn_vectors.c.event_id, turn_vectors.c.ordinal).where(
    turn_vectors.c.id == any_(uuids("ids"))
)


# Changes of turns, inside the caller's transaction


async def mark_turns_stale(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    """Mark these turns as stale: they must be written to the index again, or deleted from it."""
    table = turn_vectors.c
    rows = locked(turn_vectors, which).cte("locked")
    query = update(turn_vectors).where(table.id == rows.c.id).values(version=table.version + 1)
    await connection.execute(query)


async def reset_turn_vectors(connection: AsyncConnection, event_id: UUID) -> None:
    """Insert or reset the vector rows of an event whose messages were replaced."""
    new = (
        select(events.c.id, messages.c.ordinal, events.c.lane_id)
        .join(messages, of_event())
        .where(events.c.id == event_id, _says_something)
        .where(events.c.options["infer"].astext.is_distinct_from("false"))
    )
    row = postgresql.insert(turn_vectors).from_select(["event_id", "ordinal", "lane_id"], new)
    again = {"embedding": None, "embedder": None, "version": turn_vectors.c.version + 1}
    await connection.execute(
        row.on_conflict_do_update(index_elements=["event_id", "ordinal"], set_=again)
    )


# Entity ids and text of a turn, and whether it is wanted in the index; the message may be missing.
# OFFSET 0 makes this a subquery of its own, executed for each turn that is returned. As a plain
# join, a plan made while the tables were nearly empty read all messages, once a second.
TURN = (
    select(
        *(lanes.c[name] for name in ("project_id", "user_id", "agent_id", "app_id", "run_id")),
        func.left(messages.c.content, MOST_CHARACTERS).label("text"),
        messages.c.name,
        _wanted.label("wanted"),
    )
    .select_from(
        events.join(lanes, lanes.c.id == turn_vectors.c.lane_id).outerjoin(messages, _message)
    )
    .where(events.c.id == turn_vectors.c.event_id)
    .offset(literal_column("0"))
    .lateral("turn")
)


def _projections() -> Select[Any]:
    return select(turn_vectors, TURN).join_from(turn_vectors, TURN, true())


_EMBEDDED_OF_EVENTS = _projections().where(
    turn_vectors.c.event_id == any_(uuids("event_ids")),
    turn_vectors.c.embedder.is_not(None),
    TURN.c.wanted,
)


def _page(after: UUID, limit: int) -> Select[Any]:
    page = _projections().where(turn_vectors.c.id > after, TURN.c.wanted)
    return page.order_by(turn_vectors.c.id).limit(limit)


def _as_projection(row: Row[Any]) -> Projection:
    return Projection(
        id=row.id,
        scope=Scope.of(row),
        text=unsigned(row.text or "", row.name),
        version=row.version,
        wanted=bool(row.wanted),
        vector=from_bytes(row.embedding) if row.embedding else NO_VECTOR,
        embedder=row.embedder or "",
        recorded=row.projected_version,
    )
