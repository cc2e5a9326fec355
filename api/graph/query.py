"""The query string of the relations around an entity."""

# No `from __future__ import annotations`: FastAPI cannot resolve such annotations of a class.

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query

from api.graph.requests import LONGEST_NAME
from pipeline.domain.filters import moment
from pipeline.graph.views import GraphTimes


@dataclass(frozen=True, slots=True)
class NeighbourhoodQuery:
    """An entity by name or id, the distance from it, and the times of the relations.

    `show_expired`: also relations of memories past their expiration date.
    """

    entity: Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME)] = None
    entity_id: UUID | None = None
    hops: Annotated[int, Query(ge=1, le=3)] = 1
    as_of: str | None = None
    valid_at: str | None = None
    show_expired: bool = False

    def times(self) -> GraphTimes:
        """The times of the graph. Errors: InvalidInput."""
        return GraphTimes(
            None if self.as_of is None else moment("as_of", self.as_of),
            None if self.valid_at is None else moment("valid_at", self.valid_at),
        )


NeighbourhoodQueried = Annotated[NeighbourhoodQuery, Depends()]
