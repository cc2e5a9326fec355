"""Store of the graph: typed entities and bi-temporal relations, one graph per scope.

A relation that ends is closed, not deleted: `valid_to` is the time it stopped being true, and
`expired_at` the time Memlane learned that. An undo opens it again: see `past_ends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Integer,
    Select,
    Text,
    Uuid,
    any_,
    bindparam,
    func,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.graph.entity_resolution import USER
from pipeline.domain.graph.values import GraphEdge, LaterStatement, Node, StoredRelation
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.graph.path_search import LedgerPathSearch
from pipeline.graph.ports import GraphIndex, WalkRequest
from pipeline.graph.ranking import ranked
from pipeline.graph.sql import statement
from pipeline.graph.views import NOW, GraphPath, GraphTimes, RelationView, Walk
from pipeline.ledger.counting import COUNTED, at_least
from pipeline.ledger.filter_conditions import IN_PROJECT, lanes_with
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, lanes, relations
from pipeline.ledger.tables.graph import PLAIN
from pipeline.text.names import is_self, names_in, names_self, plain_name
from pipeline.text.relations.ends import MOST_CHARS
from pipeline.text.terms import terms

# Maximum number of current relations in one model call, and of those that a batch is compared with.
OFFERED, COMPARED = 50, 2_000
# Maximum number of pairs of names whose later statements are read, of memories that name a pair,
# and of statements.
MOST_LOOKUPS, MOST_NAMING, MOST_LATER = 50, 1_000, 200
# Maximum number of nodes with similar names.
MOST_SIMILAR = 200
# Maximum number of relations on a path, of those followed from one node, and of paths.
HOPS, FAN, MOST_PATHS, MOST_AROUND = 3, 30, 600, 2_000
# Maximum number of relations of one name that a search follows back from an entity on the way.
HUB = 4
# Lanes that a walk looks at whole, the newest ones. Of further lanes, those with an entity that the
# query names: among the MOST_NAMED ones of the project with that name that were mentioned last.
MOST_LANES, MOST_NAMED = 1_000, 2_000
# Maximum number of names of relations that are read, and that a model is shown.
MOST_NAMES, SHOWN_NAMES = 500, 40


class Graph(LedgerStore):
    """Store of relations: reads for models and searches."""

    def __init__(self, engine: AsyncEngine, index: GraphIndex | None = None) -> None:
        """`index`: follows relations; by default the ledger."""
        super().__init__(engine)
        self._index = index or LedgerPathSearch(engine)

    async def mentioned_in(
        self, scope: Scope, texts: Sequence[str], *, until: datetime | None = None
    ) -> list[StoredRelation]:
        """Current relations of a scope with an entity named in the texts, newest first.

        `until`: leave out relations that began later.
        """
        values = {
            "lane_id": scope.lane_id,
            "names": names_in("\n".join(texts)),
            "until": until,
            "limit": OFFERED,
        }
        rows = await self._direct.rows(statement("relations_by_name"), values)
        return [StoredRelation(**row) for row in rows]

    async def vocabulary(self, project_id: ProjectId) -> list[str]:
        """Names of relations that several scopes of the project use."""
        values = {"project_id": project_id, "most": MOST_NAMES, "limit": SHOWN_NAMES}
        rows = await self._direct.rows(statement("vocabulary"), values)
        return [row.relation for row in rows]

    async def known(
        self, scope: Scope, names: Sequence[str], ids: Sequence[UUID] = ()
    ) -> list[Node]:
        """Nodes of a scope with one of these plain names or ids, in the order of their mention."""
        values = {"lane_id": scope.lane_id, "names": list(names), "ids": list(ids)}
        return [
            value_of(Node, row, key=row.name_key)
            for row in await self._direct.rows(statement("nodes_by_name"), values)
        ]

    async def similar(self, scope: Scope, words: Sequence[str]) -> list[Node]:
        """Nodes of a scope with one of these words in their names, last mentioned first."""
        values = {"lane_id": scope.lane_id, "words": list(words), "limit": MOST_SIMILAR}
        return [
            value_of(Node, row, key=row.name_key)
            for row in await self._direct.rows(statement("similar"), values)
        ]

    async def current(
        self,
        scope: Scope,
        roots: Sequence[UUID],
        memory_ids: Sequence[UUID] = (),
        *,
        since: datetime,
    ) -> tuple[list[GraphEdge], dict[UUID, UUID]]:
        """Relations of these roots, or that these memories state, and the roots of merged ends.

        The current ones, newest first, then those that ended after `since`.
        """
        values = {
            "lane_id": scope.lane_id,
            "roots": list(roots),
            "memory_ids": list(memory_ids),
            "since": since,
            "limit": COMPARED,
        }
        rows = await self._direct.rows(statement("current_relations"), values)
        edges = [value_of(GraphEdge, row, fact=None, new=None) for row in rows]
        ends = (
            (row[f"{side}_id"], row[f"{side}_root"])
            for row in rows
            for side in ("source", "destination")
        )
        return edges, {node_id: root for node_id, root in ends if root is not None}

    async def said_later(
        self, scope: Scope, pairs: Sequence[tuple[str, str]], *, since: datetime
    ) -> list[LaterStatement]:
        """Active memories of a scope that were said after `since` and name both of a pair.

        The first MOST_LOOKUPS pairs, without those that more than MOST_NAMING memories name; at
        most MOST_LATER memories, those said first. None that a person edited.
        """
        some = list(dict.fromkeys(pairs))[:MOST_LOOKUPS]
        # The words for the speaker are not in all statements.
        things = [" ".join(name for name in pair if not is_self(name)) for pair in some]
        words = dict.fromkeys(frozenset(terms(names)) for names in things)
        lookups = [names for names in words if names]
        if not lookups:
            return []
        keys = [
            (number, key)
            for number, names in enumerate(lookups)
            for key in (f"lane/{scope.lane_id}", *(f"term/{term}" for term in sorted(names)))
        ]
        values = {
            "project_id": scope.project_id,
            "lane_id": scope.lane_id,
            "lookups": [number for number, _ in keys],
            "keys": [key for _, key in keys],
            "since": since,
            "longest": MOST_CHARS,
            "most": MOST_NAMING,
            "limit": MOST_LATER,
        }
        rows = await self._direct.rows(statement("said_later"), values)
        return [
            LaterStatement(row.text, row.said_at, row.valid_from, row.id, row.event_id, row.speaker)
            for row in rows
        ]

    async def stated_by(self, scope: Scope, memory_ids: Sequence[UUID]) -> list[RelationView]:
        """The current relations that these memories of a scope state."""
        ids = await self._stated(scope.project_id, NOW, memory_ids)
        paths = await self._paths(scope.project_id, [[relation_id] for relation_id in ids])
        return [path.relation for path in paths]

    async def walk(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        query: str,
        *,
        hops: int = HOPS,
        times: GraphTimes = NOW,
        expired: bool = True,
    ) -> Walk:
        """Follow up to `hops` relations from the entities that a query names.

        In the lanes with these entity ids. `expired`: also through relations of expired memories.
        """
        names = names_in(query)
        if names_self(query):
            names.append(plain_name(USER))
        scopes, incomplete = await self._lanes(project_id, pinned, names)
        if not scopes:
            return Walk(query)
        request = WalkRequest(
            project_id, scopes, hops, FAN, MOST_PATHS, names, times=times, hub=HUB
        )
        ways = await self._index.walk(request)
        paths = await self._paths(project_id, ways, times, expired=expired)
        return Walk(query, scopes, paths, times, incomplete)

    async def terms_of(
        self, project_id: ProjectId, memory_ids: Sequence[UUID]
    ) -> dict[UUID, frozenset[str]]:
        """The words of memories of the project that state relations, by their ids."""
        values = {"project_id": project_id, "ids": list(memory_ids)[:MOST_PATHS]}
        rows = await self._direct.rows(statement("terms_of_memories"), values)
        return {row.id: frozenset(row.terms) for row in rows}

    async def near(
        self,
        project_id: ProjectId,
        walk: Walk,
        memory_ids: Sequence[UUID] = (),
        *,
        limit: int,
    ) -> list[GraphPath]:
        """Relations that answer the query of a walk, best first; see pipeline/graph/ranking.

        They are on its paths, or are stated by these memories, the results of a search, which has
        chosen whether these may have expired.
        """
        stated = await self._stated(project_id, walk.times, memory_ids)
        alone = await self._paths(project_id, [[relation_id] for relation_id in stated])
        paths = [*walk.paths, *(replace(path, walked=False) for path in alone)]
        return ranked(paths, walk.query, memory_ids, limit=limit)

    async def around(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        *,
        name: str | None,
        node_id: UUID | None,
        hops: int,
        times: GraphTimes = NOW,
        expired: bool = False,
    ) -> tuple[list[GraphPath], bool]:
        """The neighbourhood of an entity: up to MOST_AROUND relations, nearest first.

        Also True if relations may be missing, because very many scopes have these ids. `expired`:
        also relations of expired memories, and those behind them.
        """
        names = [plain_name(USER if is_self(name) else name)] if name else []
        ids = [node_id] if node_id else []
        scopes, incomplete = await self._lanes(project_id, pinned, names, ids)
        ways = await self._index.walk(
            WalkRequest(project_id, scopes, hops, FAN, MOST_AROUND, names, ids, times)
        )
        paths = await self._paths(project_id, ways, times, expired=expired)
        nearest = {path.relation.id: path for path in reversed(paths)}
        return list(nearest.values())[::-1], incomplete

    async def page(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        *,
        times: GraphTimes = NOW,
        limit: int,
        offset: int,
        expired: bool = False,
    ) -> tuple[list[GraphPath], int]:
        """A page of the relations of the lanes with these ids, newest first, and their number.

        The number is a lower bound for far pages: see pipeline.ledger.counting. `expired`: also
        relations of expired memories.
        """
        if not pinned:
            return [], 0
        at_times = columns_of(times, "as_of", "valid_at")
        values: dict[str, Any] = {**pinned, **at_times, "in_project": project_id}
        values |= {"limit": limit, "offset": offset, "at": times.valid_at or times.as_of}
        some = await self._direct.rows(_lanes_of(MOST_LANES + 1, *pinned), values)
        many = len(some) > MOST_LANES
        rows = await self._direct.rows(_page(*pinned, many=many, expired=expired), values)
        counted = {**values, "limit": offset + limit + COUNTED}
        [(count,)] = await self._direct.rows(_count(*pinned, expired=expired), counted)
        count = at_least(count, len(rows), limit=limit, offset=offset)
        return await self._paths(project_id, [[row.id] for row in rows]), count

    async def _lanes(
        self,
        project_id: ProjectId,
        pinned: Mapping[str, str],
        names: Sequence[str],
        ids: Sequence[UUID] = (),
    ) -> tuple[list[UUID], bool]:
        """The lanes in which a walk starts, and whether others are left out; none without ids."""
        if not pinned:
            return [], False
        values = {**pinned, "in_project": project_id}
        rows = await self._direct.rows(_lanes_of(MOST_LANES + 1, *pinned), values)
        lane_ids = [row.id for row in rows]
        if len(lane_ids) <= MOST_LANES:
            return lane_ids, False
        # The user's own entity is in every lane, so it leads to none of them.
        others = [name for name in names if name != plain_name(USER)]
        values |= {"names": others, "ids": list(ids), "most": MOST_NAMED}
        named = [row.lane_id for row in await self._direct.rows(_lanes_naming(*pinned), values)]
        first = dict.fromkeys([*named, *lane_ids[:MOST_LANES]])
        return list(first), len(others) < len(names) or len(named) >= MOST_NAMED

    async def _stated(
        self, project_id: ProjectId, times: GraphTimes, memory_ids: Sequence[UUID]
    ) -> list[UUID]:
        """Relations that these memories state."""
        if not memory_ids:
            return []
        values = {
            "project_id": project_id,
            "memory_ids": list(memory_ids),
            "most": MOST_PATHS,
            **columns_of(times, "as_of", "valid_at"),
        }
        return [
            row.id for row in await self._direct.rows(statement("relations_of_memories"), values)
        ]

    async def _paths(
        self,
        project_id: ProjectId,
        ways: Sequence[Sequence[UUID]],
        times: GraphTimes = NOW,
        *,
        expired: bool = True,
    ) -> list[GraphPath]:
        """The paths with their relations; those with a deleted relation are left out.

        Without `expired`, also those with a relation whose memory has expired at that time.
        """
        ids = list(dict.fromkeys(relation_id for way in ways for relation_id in way))
        if not ids:
            return []
        values = {"ids": ids, "project_id": project_id, "as_of": times.as_of}
        values["at"] = times.valid_at or times.as_of
        rows = await self._direct.rows(statement("relations"), values)
        views = {row.id: RelationView(**row) for row in rows if expired or not row.expired}
        return [
            GraphPath(views[way[-1]], [views[relation_id] for relation_id in way[:-1]])
            for way in ways
            if views.keys() >= set(way)
        ]


@cache
def _lanes_of(most: int | BindParameter[int], *pinned: str) -> Select[Any]:
    """The newest lanes with these ids."""
    query = select(lanes.c.id).where(lanes_with(pinned))
    return query.order_by(lanes.c.accepted_at.desc(), lanes.c.id).limit(most)


@cache
def _lanes_naming(*pinned: str) -> Select[Any]:
    """The lanes with these ids that have one of the entities `names` or `ids`."""
    given_names = func.unnest(bindparam("names", type_=ARRAY(Text))).table_valued("name")
    of_name = (
        select(entities.c.lane_id)
        .where(entities.c.project_id == IN_PROJECT, given_names.c.name == PLAIN)
        .order_by(entities.c.mentioned_at.desc().nulls_last())
        .limit(bindparam("most", type_=Integer))
        .correlate(given_names)
        .lateral("of_name")
    )
    named = select(of_name.c.lane_id).select_from(given_names).join(of_name, true())
    given = select(entities.c.lane_id).where(
        entities.c.project_id == IN_PROJECT,
        entities.c.id == any_(bindparam("ids", type_=ARRAY(Uuid))),
    )
    near = union_all(named, given).subquery("near")
    mine = select(lanes.c.id).where(lanes.c.id == near.c.lane_id, lanes_with(pinned))
    # With the LIMIT, the planner looks each lane up instead of joining all of the project.
    return select(near.c.lane_id).join(mine.correlate(near).limit(1).lateral("mine"), true())


_EDGE = relations.alias("r")
_AT_TIMES = statement("at_times")
_MEMORY_STANDS = statement("memory_stands")


@cache
def _page(*pinned: str, many: bool, expired: bool) -> Select[Any]:
    """A page of the relations of lanes: sorted, or if there are many, in the order of the index.

    The memories of relations are looked up in that order, as far as the page reaches.
    """
    of_lane = lanes.c.id == _EDGE.c.lane_id
    times = ("valid_from", "valid_to", "created_at", "expired_at", "past_ends")
    names = ("id", "lane_id", "memory_id", "ended_by", *times)
    columns = [_EDGE.c[name] for name in names]
    rows: Any = _EDGE
    query = select(*columns).where(_AT_TIMES)
    if many:
        # With the LIMIT, the planner looks each lane up instead of joining all of the owner.
        own = select(lanes.c.id).where(of_lane, lanes_with(pinned)).correlate(_EDGE).limit(1)
        query = query.select_from(_EDGE.join(own.lateral("own"), true()))
        query = query.where(_EDGE.c.project_id == IN_PROJECT)
    else:
        query = query.join(lanes, of_lane).where(lanes_with(pinned))
        query = query.order_by(_EDGE.c.valid_from.desc(), _EDGE.c.id)
        # OFFSET 0: a condition on the memory is not a part of the query that sorts all rows.
        rows = query.offset(literal_column("0", Integer)).subquery("r")
        query = select(rows.c.id)
    query = query if expired else query.where(_MEMORY_STANDS)
    query = query.order_by(rows.c.valid_from.desc(), rows.c.id)
    return query.limit(_LIMIT).offset(bindparam("offset", type_=Integer))


@cache
def _count(*pinned: str, expired: bool) -> Select[Any]:
    """The number of the relations of lanes, up to `limit`, in up to `limit` of the newest lanes."""
    newest = _lanes_of(_LIMIT, *pinned).subquery("newest")
    of_lane = select(_EDGE.c.id).where(_EDGE.c.lane_id == newest.c.id, _AT_TIMES)
    of_lane = of_lane if expired else of_lane.where(_MEMORY_STANDS)
    edges = of_lane.limit(_LIMIT).lateral("edges")
    some = select(edges.c.id).select_from(newest.join(edges, true())).limit(_LIMIT)
    return select(func.count()).select_from(some.subquery("some"))


_LIMIT = bindparam("limit", type_=Integer)
