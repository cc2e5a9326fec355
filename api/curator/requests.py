"""Requests to the curator."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from api.http.body import EntityId, OwnRequest
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId


class CuratorRunRequest(OwnRequest):
    """A run over the memories of exactly these ids. `suggestions` and `tokens` lower its limits."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user_id": "maya", "suggestions": 10}]}
    )

    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    suggestions: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def someone(self) -> CuratorRunRequest:
        """Require at least one id."""
        if not any(getattr(self, name) for name in ENTITY_IDS):
            raise ValueError(f"give at least one of {', '.join(ENTITY_IDS)}")
        return self

    def scope(self, project_id: ProjectId) -> Scope:
        """The scope of these ids."""
        return Scope(project_id, self.user_id, self.agent_id, self.app_id, self.run_id)
