"""The graph: typed entities and bi-temporal relations, one graph a scope.

A relation that ends is closed, never deleted: `valid_to` says until when it was true in the world,
`expired_at` since when we know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain import Scope, StoredRelation
from pipeline.ledger.direct import Direct
from pipeline.ledger.effects import name_key
from pipeline.ledger.schema import entities, lanes, relations
from pipeline.ledger.sql import statement

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
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)

    async def mentioned_in(
        self, scope: Scope, texts: Sequence[str], *, until: datetime | None = None
    ) -> list[StoredRelation]:
        """Current relations of the scope with an end named in the texts, newest first; of those
        that began `until` then, where it is given.
        """
        values = {
            "lane_id": scope.lane_id,
            "said": name_key(" ".join(texts)),
            "until": until,
            "limit": OFFERED,
        }
        rows = await self._direct.rows(statement("mentioned"), values)
        return [StoredRelation(**row) for row in rows]

    async def near(
        self, where: ColumnElement[bool], query: str, found: Sequence[str], *, limit: int
    ) -> list[RelationView]:
        """Current relations of matching lanes, newest first: those with an end named in the query,
        and those with both ends named in the texts found.
        """
        source, destination = entities.alias("source"), entities.alias("destination")
        mine = relations.c.lane_id.in_(select(lanes.c.id).where(where))
        told = and_(*(names_any(" ".join(found), end) for end in (source, destination)))
        near = or_(names_any(query, source, destination), told)
        statement = _current(source, destination, and_(mine, near))
        async with self._single.connect() as connection:
            rows = await connection.execute(statement.limit(limit))
            return [RelationView(**row._mapping) for row in rows]  # noqa: SLF001


def names_any(text: str, *ends: Any) -> ColumnElement[bool]:
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
