"""Lists and searches: filters, dates, pages and options."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import AliasChoices, ConfigDict, Field, field_validator, model_validator

from api.schemas.adds import MOST_MESSAGES
from api.schemas.body import EntityId, Request
from api.schemas.fields import Fields
from api.schemas.limits import DateText, Metadata
from api.schemas.messages import MessageIn, as_list
from api.schemas.search_options import SearchOptions
from api.schemas.snapshots import SnapshotOptions
from pipeline.domain.filters import ENTITY_IDS, Filter, parse, period, require_scope
from pipeline.search.conversation import MOST_EARLIER, spoken

LONGEST_WAIT_S = 60.0
# A longer query is cut, not refused, because clients send whole prompts as queries.
LONGEST_QUERY = 8_000
OBEYED = "If set, the default cut does not apply."


class ReadRequest(Request, SnapshotOptions):
    """Filters of lists and searches. A null means the default."""

    filters: dict[str, Any] | None = None
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    categories: Any = None
    metadata: Metadata | None = None
    keywords: Any = None
    start_date: DateText | None = None
    end_date: DateText | None = Field(default=None, description="A bare date includes its day.")
    show_expired: bool = False
    show_superseded: bool = Field(
        default=False,
        description=(
            "Also memories that a newer statement of the same attribute supersedes (mode append)."
        ),
    )
    after_event: UUID | None = Field(
        default=None, description="Answer once this event of yours has ended, or `wait` is over."
    )
    wait: float = Field(default=0.0, ge=0, le=LONGEST_WAIT_S, description="Seconds.")

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, value: Any) -> Any:
        """Use the default of each field that is null."""
        if not isinstance(value, dict):
            return value
        return {name: given for name, given in value.items() if given is not None}

    def tree(self, user: str | None = None) -> Filter:
        """All filters, joined with AND, and with `user`, the user of a token.

        Errors: InvalidInput; also if they name no id.
        """
        condition = self.condition()
        if user is not None:
            own = {"user_id": {"eq": user}}
            condition = {"AND": [own, condition]} if condition else own
        return require_scope(parse(condition))

    def condition(self) -> dict[str, Any]:
        """The filters, and the conditions beside them, as one filter."""
        beside = {name: value for name in ENTITY_IDS if (value := getattr(self, name))}
        for name in ("categories", "metadata", "keywords"):
            if value := getattr(self, name):
                beside[name] = value
        if between := period(self.start_date, self.end_date):
            beside["created_at"] = between
        parts = [part for part in (self.filters, beside) if part]
        return parts[0] if len(parts) == 1 else {"AND": parts} if parts else {}


class ListRequest(ReadRequest):
    """A list of memories."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"filters": {"user_id": "maya"}}]})

    page: int | None = None
    page_size: int | None = None
    fields: Fields | None = Field(
        default=None, description="Keys of a memory to answer with; `metadata.x` is one key of it."
    )


class SearchRequest(ReadRequest, SearchOptions):
    """A search of memories."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "Where does Maya live?", "filters": {"user_id": "maya"}, "top_k": 5}
            ]
        }
    )

    query: str | None = Field(
        default=None, min_length=1, description="Its first 8,000 characters are searched for."
    )
    messages: list[MessageIn] | None = Field(
        default=None,
        max_length=MOST_MESSAGES,
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

    @field_validator("messages", mode="before")
    @classmethod
    def as_list(cls, value: object) -> object:
        """Accept a bare string or object for one message."""
        return as_list(value)

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
