"""Users, agents, apps and runs as clients register them."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from api.http.body import EntityIdFields, Request
from pipeline.domain.filters import ANY, ANY_IS_NO_ID
from pipeline.domain.limits import Metadata, PersonName
from pipeline.tenants.owners import KINDS


class RegisterRequest(Request, EntityIdFields):
    """A user, agent, app or run to register: `user_id` for a user, and so on."""

    name: PersonName | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def no_metadata(cls, value: Any) -> Any:
        """Accept null as no metadata."""
        if isinstance(value, dict) and value.get("metadata", ...) is None:
            return {**value, "metadata": {}}
        return value

    @model_validator(mode="after")
    def no_wildcard(self) -> RegisterRequest:
        """Refuse an id that filters use as a wildcard."""
        if ANY in (self.user_id, self.agent_id, self.app_id, self.run_id):
            raise ValueError(ANY_IS_NO_ID)
        return self

    def id_of(self, kind: str) -> str | None:
        """The id of this kind, or None."""
        owner_id: str | None = getattr(self, KINDS[kind])
        return owner_id
