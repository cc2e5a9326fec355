"""Edits of the entities of a graph."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, field_validator, model_validator

from api.http.body import OwnRequest, examples
from pipeline.domain.limits import one_line
from pipeline.text.names import plain_name
from pipeline.text.relations.entity_types import MOST_CHARS, entity_type

LONGEST_NAME = 300


class MergeRequest(OwnRequest):
    """The entity that another one is merged into."""

    into: UUID


class RenameRequest(OwnRequest):
    """A new name, a new type, or both."""

    model_config = examples({"name": "Ines Costa"})

    name: Annotated[str, Field(max_length=LONGEST_NAME)] | None = None
    type: Annotated[str, Field(max_length=MOST_CHARS)] | None = None

    @field_validator("name")
    @classmethod
    def has_letters(cls, value: str | None) -> str | None:
        """Refuse a name without a letter or digit."""
        if value is not None and not plain_name(one_line(value)):
            raise ValueError("a name needs a letter or a digit")
        return value and value.strip()

    @model_validator(mode="after")
    def something(self) -> RenameRequest:
        """Require at least one change."""
        if self.name is None and not self.kind:
            raise ValueError("give name, type or both")
        return self

    @property
    def kind(self) -> str | None:
        """The type in normal form."""
        return entity_type(self.type) if self.type else None
