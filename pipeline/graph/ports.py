"""Ports of the graph: reads that follow relations, and a graph server that mirrors the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pipeline.domain.tenants import ProjectId
from pipeline.graph.views import NOW, GraphTimes


@dataclass(frozen=True, slots=True)
class WalkRequest:
    """Paths to read: where they start, and their limits.

    They start at the entities of these lanes with one of the plain `names` or the `ids`. A path has
    up to `hops` relations; the `fan` newest relations of an entity are followed; at most `most`
    paths are returned. `hub`: number of relations of one name that are followed back from an entity
    on the way; None: as many as others. An index may follow more.
    """

    project_id: ProjectId
    lanes: Sequence[UUID]
    hops: int
    fan: int
    most: int
    names: Sequence[str] = ()
    ids: Sequence[UUID] = ()
    times: GraphTimes = NOW
    hub: int | None = None


class GraphIndex(Protocol):
    """Reads that follow relations."""

    async def walk(self, request: WalkRequest) -> list[Sequence[UUID]]:
        """Paths as ids of relations, nearest first.

        Merged entities are one entity, and no path visits an entity twice.
        Errors: StoreUnavailable.
        """


@dataclass(frozen=True, slots=True)
class MirrorNode:
    """An entity as a graph server stores it. `root`: the entity that shows it, or itself."""

    id: UUID
    project_id: UUID
    lane_id: UUID
    name: str
    plain: str
    kind: str
    qualifier: str | None
    root: UUID
    merged_into: UUID | None


@dataclass(frozen=True, slots=True)
class MirrorEdge:
    """A relation as a graph server stores it, between the entities that its fact names.

    `past_ends`: see `pipeline.ledger.tables.graph`.
    """

    id: UUID
    project_id: UUID
    source_id: UUID
    relation: str
    destination_id: UUID
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    expired_at: datetime | None
    event_id: UUID
    memory_id: UUID | None
    past_ends: Sequence[Mapping[str, str | None]] | None = None


@dataclass(frozen=True, slots=True)
class GoneEdge:
    """A relation that has left the ledger, or the entity `source_id`."""

    id: UUID
    project_id: UUID
    source_id: UUID


@dataclass(frozen=True, slots=True)
class GoneNode:
    """An entity that has left the ledger."""

    id: UUID
    project_id: UUID


@dataclass(frozen=True, slots=True)
class MirrorChanges:
    """Changes to mirror. Those that are gone are deleted before the others are written."""

    gone_edges: Sequence[GoneEdge] = ()
    gone_nodes: Sequence[GoneNode] = ()
    nodes: Sequence[MirrorNode] = ()
    edges: Sequence[MirrorEdge] = ()


class GraphMirror(GraphIndex, Protocol):
    """A graph server with a copy of the ledger's entities and relations.

    Errors of all operations: StoreUnavailable.
    """

    @property
    def name(self) -> str:
        """Address of the server and database, without credentials."""

    async def prepare(self) -> None:
        """Create the constraints and indexes, unless they exist."""

    async def claim(self) -> None:
        """Make this object the only writer: from now on the server refuses all others.

        Changes must be read after the claim. So no writer stores a state that is older than what
        another one has stored.
        """

    async def write(self, changes: MirrorChanges) -> None:
        """Store the changes in one transaction; repeating it changes nothing.

        Errors: StoreUnavailable, also without the last claim.
        """

    async def wipe(self) -> None:
        """Delete all entities and relations of Memlane.

        Errors: StoreUnavailable, also without the last claim.
        """

    async def counts(self) -> tuple[int, int]:
        """Numbers of entities and relations."""

    async def ping(self) -> None:
        """Check that the server answers."""

    async def close(self) -> None:
        """Close all connections."""
