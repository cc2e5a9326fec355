"""Decisions on suggestions."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, model_validator

from api.http.body import OwnRequest, examples
from api.http.limits import not_blank
from pipeline.domain.limits import MemoryText
from pipeline.domain.suggestions import SuggestionKind
from pipeline.suggestions.service import MOST_DECIDED, Action

BLANK = "a memory cannot be blank; reject the suggestion instead"


class AcceptRequest(OwnRequest):
    """Options of an acceptance. `text`: stored in place of the proposed text.

    `dry_run`: answer what the acceptance would do, and do nothing.
    """

    model_config = examples({"text": "Maya lives in Porto."})

    text: Annotated[MemoryText, not_blank(BLANK)] | None = None
    dry_run: bool = False


class DecideRequest(OwnRequest):
    """A decision on many suggestions: the given ones, or the oldest open ones of a kind."""

    model_config = examples({"action": "reject", "kind": "DELETE"})

    action: Action
    ids: Annotated[list[UUID], Field(max_length=MOST_DECIDED)] = Field(default_factory=list)
    kind: SuggestionKind | None = None

    @model_validator(mode="after")
    def one_choice(self) -> DecideRequest:
        """Require either ids or a kind."""
        if bool(self.ids) == (self.kind is not None):
            raise ValueError("give either ids or kind")
        return self
