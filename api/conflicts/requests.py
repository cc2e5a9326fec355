"""Resolutions of conflicts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import model_validator

from api.http.body import OwnRequest, examples
from api.http.limits import not_blank
from pipeline.domain.limits import MemoryText


class ConflictResolveRequest(OwnRequest):
    """A resolution: `keep` the id of one memory, `keep` "both", or a `text` instead of them."""

    model_config = examples({"keep": "both"}, {"text": "Zoe lives in Lyon."})

    keep: UUID | Literal["both"] | None = None
    text: Annotated[MemoryText, not_blank("a memory cannot be blank")] | None = None

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
