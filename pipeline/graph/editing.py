"""Edits of the graph by people: merge, split, rename and delete entities.

Each edit is one transaction under the lane's lock, so no worker writes to the graph at the same
time. A merge keeps both entities and their relations, and a split reverses it. Only a deletion
removes rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.tenants import ProjectId
from pipeline.graph.sql import statement
from pipeline.ledger.fetching import known_row
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import entities, graph_receipts, lanes, relations
from pipeline.text.names import plain_name

NO_SUCH_ENTITY = "Entity not found."
BY_REQUEST = "Merged by request."


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity of the graph. `members`: the entities that are merged into it, by id and name.

    `merged_into`: the entity that it is merged into, with the reason.
    """

    id: UUID
    name: str
    kind: str
    qualifier: str | None
    mentions: int
    created_at: datetime
    merged_into: UUID | None
    merge_reason: str | None
    merged_at: datetime | None
    members: Sequence[tuple[UUID, str]]


class GraphEditing(LedgerStore):
    """Read and edit single entities."""

    async def get(self, project_id: ProjectId, node_id: UUID) -> EntityView:
        """Return an entity. Errors: NotFound."""
        async with self._engine.connect() as connection:
            return await _view(connection, project_id, node_id)

    async def merge(self, project_id: ProjectId, node_id: UUID, into: UUID) -> EntityView:
        """Merge an entity, with all that is merged into it, into another one of its scope.

        Errors: NotFound; Conflict if it is merged already, or both are one entity.
        """
        async with self._engine.begin() as connection:
            node, other = await _locked(connection, project_id, node_id, into)
            root = other.root_id or other.id
            if node.root_id is not None:
                raise Conflict("This entity is merged into another one already: split it first.")
            if root == node.id:
                raise Conflict("These two are one entity already.")
            await connection.execute(
                update(entities).where(entities.c.root_id == node.id).values(root_id=root)
            )
            await connection.execute(
                update(entities)
                .where(entities.c.id == node.id)
                .values(
                    merged_into=other.id,
                    root_id=root,
                    merge_reason=BY_REQUEST,
                    merged_at=func.now(),
                )
            )
            return await _view(connection, project_id, root)

    async def split(self, project_id: ProjectId, node_id: UUID) -> EntityView:
        """Reverse the merge of an entity; entities that are merged into it stay with it.

        Errors: NotFound; Conflict if it is not merged.
        """
        async with self._engine.begin() as connection:
            [node] = await _locked(connection, project_id, node_id)
            if node.merged_into is None:
                raise Conflict("This entity is not merged into another one.")
            await connection.execute(statement("split"), {"node_id": node.id})
            return await _view(connection, project_id, node_id)

    async def rename(
        self, project_id: ProjectId, node_id: UUID, *, name: str | None, kind: str | None
    ) -> EntityView:
        """Change the name or the type of an entity. Errors: NotFound."""
        values = {"name": name, "plain_name": plain_name(name)} if name else {}
        async with self._engine.begin() as connection:
            await _locked(connection, project_id, node_id)
            await connection.execute(
                update(entities)
                .where(entities.c.id == node_id)
                .values(values | ({"kind": kind} if kind else {}))
            )
            return await _view(connection, project_id, node_id)

    async def erase(self, project_id: ProjectId, node_id: UUID) -> int:
        """Delete an entity, all that is merged into it, and their relations with the receipts.

        Returns the number of relations. Errors: NotFound.
        """
        async with self._engine.begin() as connection:
            await _locked(connection, project_id, node_id)
            merged = await connection.scalars(statement("merged_below"), {"node_id": node_id})
            node_ids = merged.all()
            touching = or_(
                among(relations.c.source_id, node_ids), among(relations.c.destination_id, node_ids)
            )
            ids = (await connection.scalars(select(relations.c.id).where(touching))).all()
            of_relations = among(graph_receipts.c.relation_id, ids)
            await connection.execute(delete(graph_receipts).where(of_relations))
            await connection.execute(delete(relations).where(among(relations.c.id, ids)))
            forget = {"node_id": node_id, "node_ids": node_ids}
            await connection.execute(statement("forget_merges"), forget)
            await connection.execute(delete(entities).where(among(entities.c.id, node_ids)))
            return len(ids)


async def _locked(
    connection: AsyncConnection, project_id: ProjectId, *node_ids: UUID
) -> list[Row[Any]]:
    """Lock the lane of these entities, then read them. Errors: NotFound; Conflict for two lanes."""
    mine = (entities.c.project_id == project_id, among(entities.c.id, node_ids))
    of = select(entities.c.lane_id).where(*mine).distinct()
    if len(await lock_lanes(connection, lanes.c.id.in_(of))) > 1:
        raise Conflict("Only entities of the same ids can be merged.")
    rows = await connection.execute(locked(entities, mine[0] & mine[1], *entities.c))
    by_id = {row.id: row for row in rows}
    if by_id.keys() < set(node_ids):
        raise NotFound(NO_SUCH_ENTITY)
    return [by_id[node_id] for node_id in node_ids]


async def _view(connection: AsyncConnection, project_id: ProjectId, node_id: UUID) -> EntityView:
    """Read an entity with its members. Errors: NotFound."""
    mine = (entities.c.project_id == project_id, entities.c.id == node_id)
    row = await known_row(connection, select(entities).where(*mine), missing=NO_SUCH_ENTITY)
    members = await connection.execute(
        select(entities.c.id, entities.c.name)
        .where(entities.c.root_id == node_id)
        .order_by(entities.c.name, entities.c.id)
    )
    return value_of(EntityView, row, members=[(member.id, member.name) for member in members])
