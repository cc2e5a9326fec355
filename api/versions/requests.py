"""Requests about versions of memories."""

from __future__ import annotations

from pydantic import Field

from api.http.body import OwnRequest, examples
from api.http.limits import ReasonText


class RestoreRequest(OwnRequest):
    """A version of a memory to restore."""

    model_config = examples({"version": 1})

    version: int = Field(ge=1, le=2**31 - 1, description="As `version` in the history.")
    reason: ReasonText | None = Field(default=None, description="Kept in the history.")
