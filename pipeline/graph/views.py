"""Values that reads of the graph return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RelationView:
    """A stored relation, with the names and kinds under which its entities are shown.

    `valid_from` and `valid_to`: since when and until when it holds in the world. `created_at` and
    `expired_at`: the same for what Memlane knew. `conflict_id`: the open conflict of its memory.
    `expired`: its memory is past its expiration date.
    """

    id: UUID
    source_id: UUID
    source: str
    source_kind: str
    relation: str
    destination_id: UUID
    destination: str
    destination_kind: str
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    expired_at: datetime | None
    event_id: UUID
    memory_id: UUID | None
    conflict_id: UUID | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class GraphPath:
    """A relation, and the relations that lead to it from an entity that the query names.

    `walked`: False if no path leads to it, because only a result states it.
    """

    relation: RelationView
    via: Sequence[RelationView] = ()
    walked: bool = True

    @property
    def memory_ids(self) -> list[UUID]:
        """The memories that state its relations."""
        return [each.memory_id for each in (*self.via, self.relation) if each.memory_id]


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """The times at which the graph is read.

    `as_of`: what Memlane knew then; `valid_at`: what held in the world then. None: now.
    """

    as_of: datetime | None = None
    valid_at: datetime | None = None


NOW = GraphTimes()


@dataclass(frozen=True, slots=True)
class Walk:
    """The paths from the entities that a query names, in these scopes, at these times.

    `incomplete`: there are more scopes than one walk looks at, so paths may be missing.
    """

    query: str
    scopes: Sequence[UUID] = ()
    paths: Sequence[GraphPath] = ()
    times: GraphTimes = NOW
    incomplete: bool = False
