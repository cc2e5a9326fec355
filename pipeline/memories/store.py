"""Reads of memories.

`memories` has the current state, `memory_history` every state of a memory; both are always written
in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ClauseElement,
    ColumnElement,
    Integer,
    Uuid,
    and_,
    any_,
    bindparam,
    func,
    select,
)

from pipeline.domain.consolidation.candidates import Comparable
from pipeline.domain.errors import NotFound
from pipeline.domain.filters import Filter, size
from pipeline.domain.memories import Memory
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.writes import Write
from pipeline.ledger.counting import COUNTED, number_of
from pipeline.ledger.fetching import fetch
from pipeline.ledger.filter_conditions import IN_PROJECT, matching, shape, shown
from pipeline.ledger.statements import SHAPES
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import ACTIVE, memories, memory_history
from pipeline.memories.expiration import unexpired
from pipeline.memories.rows import as_memory
from pipeline.memories.sql import statement
from pipeline.memories.superseded import readable_columns, superseded
from pipeline.text.equality import text_hash
from pipeline.text.statements.slots import Cardinality

# Number of memories, the newest ones, whose categories are listed.
CATEGORIZED = 10_000


@dataclass(frozen=True, slots=True)
class SameTexts:
    """`empty`: the scope has no memories. `known`: ids of the memories, by text hash."""

    empty: bool
    known: Mapping[bytes, UUID]


@dataclass(frozen=True, slots=True)
class StatedLine:
    """A line of the receipt of an earlier event with the same messages as `event_id`.

    `stands`: its memory is active and has the line's text.
    """

    event_id: UUID
    text: str
    message_ordinal: int
    stands: bool


@dataclass(frozen=True, slots=True)
class Touchable:
    """Memories that a batch may change.

    `forgotten`: pairs of an event and the hash of a text that it may not learn again, because a
    person has deleted it after the event was accepted. `today`: the day (UTC) of the read, behind
    which expiration dates are over.
    """

    memories: list[Memory]
    today: date
    forgotten: frozenset[tuple[UUID, bytes]] = frozenset()


class Memories(LedgerStore):
    """Store of the current memories."""

    # Reads of the stages

    async def around(self, scope: Scope, texts: Sequence[str]) -> SameTexts:
        """The memories of a scope that have exactly one of the texts."""
        values = {"lane_id": scope.lane_id, "hashes": [text_hash(text) for text in texts]}
        rows = await self._direct.rows(statement("around"), values)
        return SameTexts(
            empty=rows[0].empty,
            known={row.text_hash: row.id for row in rows if row.id is not None},
        )

    async def stated_before(
        self, scope: Scope, event_ids: Sequence[UUID], *, before: int, reach: int
    ) -> list[StatedLine]:
        """The receipt lines of earlier events with the same messages and options, in order.

        Reads the last `reach` events of the scope with a number below `before`.
        """
        values = {"lane_id": scope.lane_id, "event_ids": list(event_ids)}
        values |= {"before": before, "reach": reach}
        rows = await self._direct.rows(statement("stated_before"), values)
        return [
            StatedLine(row.event_id, row.text, row.message_ordinal, row.memory is not None)
            for row in rows
        ]

    async def cardinalities(
        self, scope: Scope, attributes: Collection[str]
    ) -> dict[str, Cardinality]:
        """The cardinalities of these attributes that the scope's active memories know."""
        values = {"lane_id": scope.lane_id, "attributes": sorted(attributes)}
        rows = await self._direct.rows(statement("cardinalities"), values)
        return {row.attribute: Cardinality(row.cardinality) for row in rows}

    async def comparable(
        self, scope: Scope, *, embedder: str, limit: int
    ) -> list[tuple[Comparable, bytes | None]]:
        """The scope's active memories, each with its packed vector if this embedder computed it."""
        values = {"lane_id": scope.lane_id, "embedder": embedder, "limit": limit}
        rows = await self._direct.rows(statement("comparable"), values)
        return [(Comparable(row.id, row.terms, row.slot), row.embedding) for row in rows]

    async def comparable_of(
        self,
        scope: Scope,
        *,
        ids: Sequence[UUID],
        slots: Sequence[str],
        embedder: str,
        limit: int,
    ) -> list[tuple[Comparable, bytes | None]]:
        """The active memories of the scope that have a slot or an id, the first ids first."""
        values = {"lane_id": scope.lane_id, "embedder": embedder, "limit": limit}
        values |= {"ids": list(ids), "slots": list(slots)}
        rows = await self._direct.rows(statement("comparable_of"), values)
        return [(Comparable(row.id, row.terms, row.slot), row.embedding) for row in rows]

    async def is_larger(self, scope: Scope, size: int) -> bool:
        """Tell if the scope has more active memories than this."""
        values = {"lane_id": scope.lane_id, "limit": size + 1}
        [row] = await self._direct.rows(statement("count_up_to"), values)
        return bool(row.number > size)

    async def size(self, scope: Scope) -> int:
        """Number of active memories of a scope."""
        [(number,)] = await self._direct.rows(_SIZE, {"lane_id": scope.lane_id})
        return int(number)

    async def active(self, project_id: ProjectId, ids: Sequence[UUID]) -> list[Memory]:
        """The active memories of the project among these ids, in no particular order."""
        if not ids:
            return []
        values = {"in_project": project_id, "ids": list(ids)}
        return [as_memory(row) for row in await self._direct.rows(_ACTIVE_OF, values)]

    async def touchable(self, scope: Scope, writes: Sequence[Write]) -> Touchable:
        """The active memories that the writes name, repeat or contradict, and deleted texts."""
        values = {
            "lane_id": scope.lane_id,
            "ids": [write.target for write in writes if write.target],
            "hashes": [text_hash(text) for w in writes for text in (w.text, w.fact.text)],
            "event_ids": list({write.event.id for write in writes}),
            "slots": list({w.fact.slot for w in writes if w.fact.single_valued}),
        }
        rows = await self._direct.rows(statement("affected_memories"), values)
        forgotten = rows[0].forgotten or ()
        return Touchable(
            [as_memory(row) for row in rows if row.id is not None],
            rows[0].today,
            frozenset((UUID(event_id), text_hash(text)) for event_id, text in forgotten),
        )

    async def last_changed_by(
        self, scope: Scope, ids: Sequence[UUID], event_ids: Sequence[UUID]
    ) -> set[UUID]:
        """Ids of those memories of the scope whose newest version one of the events wrote."""
        values = {"lane_id": scope.lane_id, "ids": list(ids), "event_ids": list(event_ids)}
        return {row.id for row in await self._direct.rows(_LAST_CHANGED_BY, values)}

    # Reads of users

    async def get(self, project_id: ProjectId, memory_id: UUID) -> Memory:
        """One active memory. Errors: NotFound."""
        values = {"in_project": project_id, "memory_id": memory_id}
        row = await self._direct.row(_ONE, values)
        if row is None:
            raise NotFound("Memory not found!")
        return as_memory(row)

    async def page(
        self,
        project_id: ProjectId,
        tree: Filter,
        *,
        expired: bool,
        limit: int,
        offset: int,
        older: bool = False,
    ) -> tuple[list[Memory], int]:
        """A page of active memories that match, newest first, and the number of all matches.

        The number is a lower bound for far pages: see pipeline.ledger.counting.
        `expired`: include memories past their expiration date. `older`: include superseded ones.
        """
        shaped, values = shape(tree)
        values |= {"in_project": project_id, "limit": limit, "offset": offset}
        values["counted"] = offset + limit + COUNTED
        wanted, conditions = _Wanted(shaped, expired, older), size(tree)
        count, page = [
            await SHAPES.of(build, wanted, conditions=conditions) for build in (_count, _page)
        ]
        [(total,)] = await self._direct.rows(count, values)
        return [as_memory(row) for row in await self._direct.rows(page, values)], total

    async def categories(self, project_id: ProjectId) -> list[str]:
        """Names of all categories of the project's newest memories, sorted; see CATEGORIZED."""
        newest = (
            select(memories.c.categories)
            .where(
                memories.c.project_id == project_id, shown(memories), memories.c.state == "ACTIVE"
            )
            .order_by(memories.c.created_at.desc())
            .limit(CATEGORIZED)
            .subquery("newest")
        )
        category = func.unnest(newest.c.categories).label("category")
        query = select(category).distinct().order_by(category)
        return [row.category for row in await fetch(self._single, query)]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The shape of a list: its statements depend on nothing else."""

    tree: Filter
    expired: bool
    older: bool

    @property
    def condition(self) -> ColumnElement[bool]:
        """The condition on memories."""
        # A parameter: with the constant, a generic plan reads all active memories for a bitmap.
        current = and_(memories.c.state == "ACTIVE", matching(self.tree, memories))
        if not self.expired:
            current = and_(current, unexpired())
        return current if self.older else and_(current, ~superseded())


def _count(wanted: _Wanted) -> ClauseElement:
    """The number of matches, exact up to `counted`."""
    return number_of(select(memories.c.id).where(wanted.condition))


def _page(wanted: _Wanted) -> ClauseElement:
    return (
        select(*readable_columns())
        .where(wanted.condition)
        .order_by(memories.c.created_at.desc(), memories.c.id)
        .limit(bindparam("limit", type_=Integer))
        .offset(bindparam("offset", type_=Integer))
    )


_LANE = memories.c.lane_id == bindparam("lane_id", type_=Uuid)
_IDS = memories.c.id == any_(bindparam("ids", type_=ARRAY(Uuid)))
_SIZE = select(func.count()).where(_LANE, memories.c.state == ACTIVE)
_ACTIVE_OF = select(memories).where(
    memories.c.project_id == IN_PROJECT, _IDS, memories.c.state == ACTIVE
)
_ONE = select(*readable_columns()).where(
    memories.c.project_id == IN_PROJECT,
    memories.c.id == bindparam("memory_id", type_=Uuid),
    memories.c.state == ACTIVE,
)
_NEWEST = and_(
    memory_history.c.memory_id == memories.c.id, memory_history.c.version == memories.c.version
)
_LAST_CHANGED_BY = (
    select(memories.c.id)
    .join(memory_history, _NEWEST)
    .where(
        _LANE, _IDS, memory_history.c.event_id == any_(bindparam("event_ids", type_=ARRAY(Uuid)))
    )
)
