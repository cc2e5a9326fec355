"""The graph: typed entities and bi-temporal relations, one graph a scope.

A relation that ends is closed, never deleted: `valid_to` says until when it was true in the world,
`expired_at` since when we know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain import (
    Activation,
    Batch,
    Entity,
    Event,
    Fact,
    GraphChanges,
    Relation,
    Scope,
    StageName,
    StoredRelation,
    Usage,
)
from pipeline.ledger import fence
from pipeline.ledger.schema import entities, lanes, relations
from pipeline.outputs import Related, dump

# More current relations than this are not shown to a model at once.
OFFERED = 50


@dataclass(frozen=True, slots=True)
class RelationView:
    """A relation as it is read back: names and kinds instead of ids."""

    id: UUID
    source: str
    source_kind: str
    relation: str
    destination: str
    destination_kind: str
    valid_from: datetime
    valid_to: datetime | None


class Graph:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def mentioned_in(self, scope: Scope, texts: Sequence[str]) -> list[StoredRelation]:
        """Current relations of the scope with an end named in the texts, newest first."""
        source, destination = entities.alias("source"), entities.alias("destination")
        named = _named(" ".join(texts), source, destination)
        query = _current(source, destination, and_(relations.c.lane_id == scope.lane_id, named))
        async with self._single.connect() as connection:
            rows = await connection.execute(query.limit(OFFERED))
            return [StoredRelation(r.id, r.source, r.relation, r.destination) for r in rows]

    async def apply(
        self,
        activation: Activation,
        batch: Batch,
        facts: Sequence[Fact],
        related: Related,
        usage: Usage,
    ) -> None:
        """Write the changes and keep the stage's output in one fenced transaction.

        `facts` are those the changes count from. Errors: LaneLost.
        """
        async with self._engine.begin() as connection:
            await fence.hold(connection, activation)
            said_at = max(message.said_at for message in batch.messages)
            await _end(connection, batch, facts, related.changes, said_at)
            for relation in related.changes.relations:
                await _upsert(connection, batch, facts[relation.fact], relation)
            await fence.keep(connection, activation, StageName.RELATE, dump(related), usage)

    async def near(
        self, where: ColumnElement[bool], query: str, found: Sequence[str], *, limit: int
    ) -> list[RelationView]:
        """Current relations of matching lanes, newest first: those with an end named in the query,
        and those with both ends named in the texts found.
        """
        source, destination = entities.alias("source"), entities.alias("destination")
        mine = relations.c.lane_id.in_(select(lanes.c.id).where(where))
        told = and_(*(_named(" ".join(found), end) for end in (source, destination)))
        near = or_(_named(query, source, destination), told)
        statement = _current(source, destination, and_(mine, near))
        async with self._single.connect() as connection:
            rows = await connection.execute(statement.limit(limit))
            return [RelationView(**row._mapping) for row in rows]  # noqa: SLF001


def name_key(name: str) -> str:
    """Equal for spellings of one name that differ in case and spacing."""
    return " ".join(name.casefold().split())


def _named(text: str, *ends: Any) -> ColumnElement[bool]:
    """Any of the ends is named in the text."""
    said = literal(name_key(text))
    return or_(*(func.strpos(said, end.c.name_key) > 0 for end in ends))


def _current(source: Any, destination: Any, where: ColumnElement[bool]) -> Any:
    return (
        select(
            relations.c.id,
            source.c.name.label("source"),
            source.c.kind.label("source_kind"),
            relations.c.relation,
            destination.c.name.label("destination"),
            destination.c.kind.label("destination_kind"),
            relations.c.valid_from,
            relations.c.valid_to,
        )
        .join(source, source.c.id == relations.c.source_id)
        .join(destination, destination.c.id == relations.c.destination_id)
        .where(relations.c.expired_at.is_(None), where)
        .order_by(relations.c.valid_from.desc(), relations.c.id)
    )


async def _end(
    connection: AsyncConnection,
    batch: Batch,
    facts: Sequence[Fact],
    changes: GraphChanges,
    said_at: datetime,
) -> None:
    """Close the ended relations, each by the event that put another in its place.

    Where a batch of several events ends one and puts none in its place, its last event is held to
    have ended it: the model says what ended, not by which fact.
    """
    placed = {
        (_entity_id(batch.scope, new.source), new.relation): _event_of(batch, facts[new.fact])
        for new in changes.relations
    }
    current = select(relations.c.id, relations.c.source_id, relations.c.relation).where(
        relations.c.id.in_(changes.ended),
        relations.c.lane_id == batch.scope.lane_id,
        relations.c.expired_at.is_(None),
    )
    for row in (await connection.execute(current)).all() if changes.ended else ():
        event = placed.get((row.source_id, row.relation), batch.events[-1])
        await connection.execute(
            update(relations)
            .where(relations.c.id == row.id)
            .values(valid_to=said_at, expired_at=func.now(), ended_by=event.id)
        )


def _event_of(batch: Batch, fact: Fact) -> Event:
    return batch.events[fact.source.event]


def _entity_id(scope: Scope, entity: Entity) -> UUID:
    return uuid5(scope.lane_id, f"entity:{name_key(entity.name)}")


async def _upsert(
    connection: AsyncConnection, batch: Batch, fact: Fact, relation: Relation
) -> None:
    """One relation with both its ends. Repeating it changes nothing."""
    event = _event_of(batch, fact)
    ends = [
        await _entity(connection, batch.scope, end)
        for end in (relation.source, relation.destination)
    ]
    await connection.execute(
        insert(relations)
        .values(
            id=uuid5(event.id, f"relation:{event.seq}:{ends[0]}:{relation.relation}:{ends[1]}"),
            project_id=batch.scope.project_id,
            lane_id=batch.scope.lane_id,
            source_id=ends[0],
            relation=relation.relation,
            destination_id=ends[1],
            event_id=event.id,
            valid_from=event.messages[fact.source.message].said_at,
        )
        .on_conflict_do_nothing()
    )


async def _entity(connection: AsyncConnection, scope: Scope, entity: Entity) -> UUID:
    entity_id = _entity_id(scope, entity)
    await connection.execute(
        insert(entities)
        .values(
            id=entity_id,
            project_id=scope.project_id,
            lane_id=scope.lane_id,
            name=entity.name,
            name_key=name_key(entity.name),
            kind=entity.kind,
        )
        .on_conflict_do_nothing()
    )
    return entity_id
