"""Bodies of searches: a question, filters, dates and options."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, field_validator, model_validator

from api.adds.messages import MessageIn, as_list
from api.http.body import examples
from api.lists.requests import ReadRequest
from api.search.options import SearchOptions
from pipeline.domain.limits import MOST_MESSAGES
from pipeline.search.conversation import MOST_EARLIER, spoken

# A longer query is cut, not refused, because clients send whole prompts as queries.
LONGEST_QUERY = 8_000
OBEYED = "If set, the default cut does not apply."


class SearchRequest(ReadRequest, SearchOptions):
    """A search of memories."""

    model_config = examples(
        {"query": "Where does Maya live?", "filters": {"user_id": "maya"}, "top_k": 5}
    )

    query: str | None = Field(
        default=None, min_length=1, description="Its first 8,000 characters are searched for."
    )
    messages: Annotated[
        list[MessageIn] | None, Field(max_length=MOST_MESSAGES), BeforeValidator(as_list)
    ] = Field(
        default=None,
        description=(
            "The conversation so far, as for an add. Without `query`, its last user message is the "
            "question; the user's turns before it say what the question is about."
        ),
    )
    top_k: int = Field(default=10, ge=1, le=1000, description=OBEYED)
    threshold: float = Field(default=0.1, ge=0, le=1, description=OBEYED)

    @field_validator("query")
    @classmethod
    def not_blank(cls, value: str | None) -> str | None:
        """Refuse a blank query, and cut a long one."""
        if value is not None and not value.strip():
            raise ValueError("give the text to search for")
        return value and value.strip()[:LONGEST_QUERY]

    @model_validator(mode="after")
    def asks(self) -> SearchRequest:
        """Require a question: a query, or a user message."""
        if not self.turns():
            raise ValueError("give the text to search for, as query or as a user message")
        return self

    @property
    def leaves_the_number_open(self) -> bool:
        """True if the request sets no limit on the results, so that the default cut may apply."""
        return self.model_fields_set.isdisjoint({"top_k", "threshold", "max_tokens"})

    def turns(self) -> list[str]:
        """The question, then the user's turns before it, newest first."""
        earlier = spoken([message.turn() for message in self.messages or ()])
        turns = [self.query, *earlier] if self.query else earlier
        return [turn[:LONGEST_QUERY] for turn in turns[: 1 + MOST_EARLIER]]


class OlderSearchRequest(SearchRequest):
    """A search of versions 1 and 2: another default threshold, and `limit` for `top_k`."""

    top_k: int = Field(
        default=10,
        ge=1,
        le=1000,
        validation_alias=AliasChoices("top_k", "limit"),
        description=OBEYED,
    )
    threshold: float = Field(default=0.3, ge=0, le=1, description=OBEYED)
    output_format: str | None = None
