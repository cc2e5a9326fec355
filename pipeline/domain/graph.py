"""The graph's values: entities, relations and their changes."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from pipeline.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph; `kind` is a lower-case word such as person, place, organization."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed edge in the words of the field: source --relation--> destination.

    `fact` is the 0-based position of the fact it was read from.
    """

    source: Entity
    relation: str
    destination: Entity
    fact: int


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """An edge that is current in the graph, offered to a model as something that may have ended."""

    relation_id: UUID
    source: str
    relation: str
    destination: str


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """New edges, and the ids of current edges that the new facts end."""

    relations: tuple[Relation, ...] = ()
    ended: tuple[UUID, ...] = ()


def name_key(name: str) -> str:
    """Equal for spellings of one name that differ in case and spacing."""
    return " ".join(name.casefold().split())


def entity_id(scope: Scope, entity: Entity) -> UUID:
    return uuid5(scope.lane_id, f"entity:{name_key(entity.name)}")
