"""The scope: the owner of memories, and the lane that orders its events."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

from pipeline.domain.tenants import ProjectId


@dataclass(frozen=True, slots=True)
class Scope:
    """Owner of memories and unit of ordering: one scope has one lane."""

    project_id: ProjectId
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, row: Any) -> Scope:
        """The scope of a row with these columns."""
        return cls(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id)

    @property
    def ids(self) -> dict[str, Any]:
        """The ids by the names of their columns: the project's and the entity ids."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def lane_id(self) -> UUID:
        """Id of the lane, derived from the scope: no process needs a look-up."""
        return _lane_id(self)

    @property
    def owner(self) -> str:
        """The widest id given. It selects the vector bucket, so an owner's memories share one."""
        return self.user_id or self.agent_id or self.app_id or self.run_id or ""


@lru_cache(maxsize=1_000)  # called a dozen times per event
def _lane_id(scope: Scope) -> UUID:
    ids = (scope.user_id, scope.agent_id, scope.app_id, scope.run_id)
    # Length-prefixed, so two different lists of ids never give the same key.
    key = "".join("-" if part is None else f"{len(part)}:{part}" for part in ids)
    return uuid5(scope.project_id, key)
