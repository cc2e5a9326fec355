"""Resolutions of conflicts."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import field_validator, model_validator

from api.http.body import OwnRequest, examples
from pipeline.domain.limits import MemoryText


class ConflictResolveRequest(OwnRequest):
    """A resolution: `keep` the id of one memory, `keep` "both", or a `text` instead of them."""

    model_config = examples({"keep": "both"}, {"text": "Zoe lives in Lyon."})

    keep: UUID | Literal["both"] | None = None
    text: MemoryText | None = None

    @field_validator("text")
    @classmethod
    def not_blank(cls, value: str | None) -> str | None:
        """Refuse a blank text."""
        if value is not None and not value.strip():
            raise ValueError("a memory cannot be blank")
        return value and value.strip()

    @model_validator(mode="after")
    def one_choice(self) -> ConflictResolveRequest:
        """Require exactly one of the two."""
        if (self.keep is None) == (self.text is None):
            raise ValueError("give either keep or text")
        return self

    @property
    def kept_id(self) -> UUID | None:
        """The memory to keep; None for both, and for a text."""
        return self.keep if isinstance(self.keep, UUID) else None
