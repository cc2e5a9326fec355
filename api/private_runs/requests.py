"""Requests about private runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import ConfigDict, Field, model_validator

from api.http.body import Moment, OwnRequest
from pipeline.tenants.private_runs import Privacy


class PrivateRunRequest(OwnRequest):
    """The kind of a private run, and the end of a temporary one."""

    model_config = ConfigDict(json_schema_extra={"example": {"privacy": "temporary"}})

    privacy: Privacy
    expires_at: Moment = Field(
        default=None,
        description=(
            "Of a temporary run: when it is erased. Default: after MEMLANE_TEMPORARY_RUN_HOURS."
        ),
    )

    @model_validator(mode="after")
    def only_temporary(self) -> PrivateRunRequest:
        """Refuse an end of an incognito run, which has nothing to erase."""
        if self.expires_at is not None and self.privacy is Privacy.INCOGNITO:
            raise ValueError("an incognito run stores nothing, so it has no expires_at")
        return self

    def end(self, now: datetime, *, hours: float) -> datetime | None:
        """The time of the end: the given one, or that of a temporary run after these hours."""
        if self.privacy is Privacy.INCOGNITO:
            return None
        return self.expires_at or now.astimezone(UTC) + timedelta(hours=hours)
