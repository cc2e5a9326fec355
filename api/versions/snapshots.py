"""The time of a read, and the replaced memories that it includes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel, Field

from api.http.body import Moment
from pipeline.domain.filters import moment
from pipeline.domain.versions import Snapshot


class SnapshotOptions(BaseModel):
    """Options of a read: system time, world time, and replaced memories."""

    as_of: Moment = Field(
        default=None, description="The memories as they were stored at this time."
    )
    valid_at: Moment = Field(
        default=None, description="The statements that held at this time in the world."
    )
    include_superseded: bool = Field(
        default=False, description="Also earlier texts, and statements that a later one replaced."
    )
    include_merged: bool = Field(
        default=False, description="Also memories that were merged into another one."
    )
    latest_only: bool = Field(
        default=False, description="Only current memories; overrides both `include_` options."
    )

    def snapshot(self) -> Snapshot:
        """The snapshot to read."""
        more = not self.latest_only
        return Snapshot(
            self.as_of,
            self.valid_at,
            self.include_superseded and more,
            self.include_merged and more,
        )


def snapshot_of(
    as_of: str | None = None,
    valid_at: str | None = None,
    include_superseded: bool = False,
    include_merged: bool = False,
) -> Snapshot:
    """The snapshot of a query string. Errors: InvalidInput."""
    return Snapshot(
        moment("as_of", as_of) if as_of else None,
        moment("valid_at", valid_at) if valid_at else None,
        include_superseded,
        include_merged,
    )


SnapshotQuery = Annotated[Snapshot, Depends(snapshot_of)]
