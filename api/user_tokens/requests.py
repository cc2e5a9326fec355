"""Requests about users' tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import ConfigDict, Field, field_validator

from api.http.body import LONGEST_ID, OwnRequest
from pipeline.domain.filters import ANY, ANY_IS_NO_ID
from pipeline.domain.tenants import Right

SHORTEST_S, LONGEST_S = 60, 86_400


class UserTokenRequest(OwnRequest):
    """A token for one user."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"user_id": "maya", "rights": ["read", "correct"]}}
    )

    user_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    rights: list[Right] = Field(
        default_factory=lambda: [Right.READ],
        min_length=1,
        description="`read`: lists, searches, history. `correct`: change texts. `delete`: delete"
        " memories, and erase all.",
    )
    expires_in_s: int = Field(default=3_600, ge=SHORTEST_S, le=LONGEST_S, description="Seconds.")

    @field_validator("user_id")
    @classmethod
    def one_user(cls, value: str) -> str:
        """Refuse a blank id, and the one that filters use as a wildcard."""
        if not value.strip():
            raise ValueError("give the id of a user")
        if value == ANY:
            raise ValueError(ANY_IS_NO_ID)
        return value

    @property
    def lifetime(self) -> timedelta:
        """Time after which the token ends."""
        return timedelta(seconds=self.expires_in_s)
