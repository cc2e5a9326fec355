"""Responses about entities of the graph."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from typing_extensions import TypeAliasType, TypedDict

from api.http.shared_responses import DoneJson, Id, json_of
from pipeline.graph.editing import EntityView


class GraphMemberJson(TypedDict):
    """An entity that is merged into another one."""

    id: Id
    name: str


class GraphEntityJson(TypedDict):
    """An entity of the graph, with those that are merged into it."""

    id: Id
    name: str
    type: str
    qualifier: str | None
    mentions: int
    merged_into: Id | None
    merge_reason: str | None
    merged_at: datetime | None
    members: list[GraphMemberJson]
    created_at: datetime


class DeletedEntityJson(DoneJson):
    """A deleted entity, and the number of its relations."""

    relations: int


class ExportedEntityJson(TypedDict):
    """An entity as it is exported."""

    kind: Literal["entity"]
    id: Id
    name: str
    type: str
    qualifier: str | None
    mentions: int
    created_at: datetime
    merged_into: Id | None
    merge_reason: str | None
    merged_at: datetime | None


class ExportedRelationJson(TypedDict):
    """A relation as it is exported. `ended_by`: the event that ended it."""

    kind: Literal["relation"]
    id: Id
    source_id: Id
    relationship: str
    target_id: Id
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    expired_at: datetime | None
    memory_id: Id | None
    event_id: Id
    ended_by: Id | None


GraphRowJson = TypeAliasType("GraphRowJson", ExportedEntityJson | ExportedRelationJson)


def entity(row: EntityView) -> GraphEntityJson:
    """An entity, with those that are merged into it."""
    members = [{"id": str(node_id), "name": name} for node_id, name in row.members]
    return json_of(GraphEntityJson, row, type=row.kind, members=members)
