"""The graph: typed entities and bi-temporal relations, one graph a scope.

A relation that ends is closed, never deleted: `valid_to` says until when it was true in the world,
`expired_at` since when we know.
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
from pipeline.ledger.statements import Direct
from pipeline.ledger.tables import entities, lanes, relations
from pipeline.ledger.where import lanes_with

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
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        query: str,
        found: Sequence[str],
        *,
        limit: int,
    ) -> list[RelationView]:
        """Current relations of the lanes with these ids, newest first: those with an end named in
        the query, and those with both ends named in the texts found.
        """
        if not pinned:
            return []
        values = {
            **pinned,
            "in_project": project_id,
            "asked": name_key(query),
            "told": name_key(" ".join(found)),
            "limit": limit,
        }
        return [RelationView(**row) for row in await self._direct.rows(_near(*pinned), values)]


@cache
def _near(*pinned: str) -> Select[Any]:
    source, destination = entities.alias("source"), entities.alias("destination")
    mine = relations.c.lane_id.in_(select(lanes.c.id).where(lanes_with(pinned)))
    told = and_(*(names_any("told", end) for end in (source, destination)))
    near = or_(names_any("asked", source, destination), told)
    limit = bindparam("limit", type_=Integer)
    return _current(source, destination, and_(mine, near)).limit(limit)


def names_any(text: str, *ends: Any) -> ColumnElement[bool]:
    """Any of the ends is named in the text that the parameter of this name holds."""
    said = bindparam(text, type_=Text)
    return or_(*(func.strpos(said, end.c.name_key) > 0 for end in ends))


def _current(source: Any, destination: Any, where: ColumnElement[bool]) -> Select[Any]:
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
