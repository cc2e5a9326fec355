"""Store of the graph: typed entities and bi-temporal relations, one graph per scope.

A relation that ends is closed, not deleted: `valid_to` is the time it stopped being true, and
`expired_at` the time Memlane learned that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, Select, Text, and_, bindparam, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.graph import StoredRelation, name_key
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.graph.sql import statement
from pipeline.ledger.filter_conditions import lanes_with
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import entities, lanes, relations

# Maximum number of current relations in one model call.
OFFERED = 50


@dataclass(frozen=True, slots=True)
class RelationView:
    """A stored relation with the names and kinds of its entities."""

    id: UUID
    source: str
    source_kind: str
    relation: str
    destination: str
    destination_kind: str
    valid_from: datetime
    valid_to: datetime | None


class Graph:
    """Store of relations: reads for models and searches."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._direct = Direct(engine)

    async def mentioned_in(
        self, scope: Scope, texts: Sequence[str], *, until: datetime | None = None
    ) -> list[StoredRelation]:
        """Current relations of a scope with an entity named in the texts, newest first.

        `until`: leave out relations that began later.
        """
        values = {
            "lane_id": scope.lane_id,
            "text": name_key(" ".join(texts)),
            "until": until,
            "limit": OFFERED,
        }
        rows = await self._direct.rows(statement("mentioned"), values)
        return [StoredRelation(**row) for row in rows]

    async def near(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        query: str,
        texts: Sequence[str],
        *,
        limit: int,
    ) -> list[RelationView]:
        """Current relations near a search, newest first, in the lanes with these entity ids.

        These are the relations with an entity named in the query, and those with both entities
        named in `texts`, the search results.
        """
        if not pinned:
            return []
        values = {
            **pinned,
            "in_project": project_id,
            "query": name_key(query),
            "texts": name_key(" ".join(texts)),
            "limit": limit,
        }
        return [RelationView(**row) for row in await self._direct.rows(_near(*pinned), values)]


@cache
def _near(*pinned: str) -> Select[Any]:
    """Statement for the relations near a query or its results, for the entity ids in `pinned`."""
    source, destination = entities.alias("source"), entities.alias("destination")
    in_lanes = relations.c.lane_id.in_(select(lanes.c.id).where(lanes_with(pinned)))
    both_in_texts = and_(*(names_any("texts", end) for end in (source, destination)))
    near = or_(names_any("query", source, destination), both_in_texts)
    limit = bindparam("limit", type_=Integer)
    return _current(source, destination, and_(in_lanes, near)).limit(limit)


def names_any(text: str, *ends: Any) -> ColumnElement[bool]:
    """True if the text in the bind parameter `text` contains the name of one of the entities."""
    value = bindparam(text, type_=Text)
    return or_(*(func.strpos(value, end.c.name_key) > 0 for end in ends))


def _current(source: Any, destination: Any, where: ColumnElement[bool]) -> Select[Any]:
    """Select current relations with the names and kinds of their entities, newest first."""
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
