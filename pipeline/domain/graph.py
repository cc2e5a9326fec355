"""Values of the graph: entities, relations, and changes to them."""

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
    """A directed edge: source --relation--> destination.

    `fact` is the 0-based position of the fact that states it.
    """

    source: Entity
    relation: str
    destination: Entity
    fact: int


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A current edge of the graph, shown to the model, which can end it."""

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
    """Key of an entity name: equal for names that differ only in case or white space."""
    return " ".join(name.casefold().split())


def entity_id(scope: Scope, entity: Entity) -> UUID:
    """Stable id of an entity: the same name in the same scope gives the same id."""
    return uuid5(scope.lane_id, f"entity:{name_key(entity.name)}")
