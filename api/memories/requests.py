"""Changes of single memories, and of many at once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, field_validator, model_validator

from api.http.body import ExpirationDate, Moment, Request, examples
from api.http.limits import ReasonText, not_blank
from pipeline.domain.filters import ANY, ENTITY_IDS
from pipeline.domain.limits import MemoryText, Metadata

MOST_AT_ONCE = 1_000
# The filters that together name all memories of a project.
ALL_IDS = [{name: ANY} for name in ENTITY_IDS]
BLANK = "a memory cannot be blank; delete it instead"
NOTHING_TO_CHANGE = "Give at least one of text, metadata, timestamp, expiration_date, pinned."


class UpdateRequest(Request):
    """Changes of one memory."""

    model_config = examples({"text": "Maya lives in Lisbon."})

    also = frozenset({"message", "data", "memory"})

    text: Annotated[MemoryText, not_blank(BLANK)] | None = None
    metadata: Metadata | None = None
    timestamp: Moment = None
    expiration_date: ExpirationDate = None
    pinned: bool | None = Field(
        default=None, description="True: no model changes this memory; false: unpin it."
    )
    version: int | None = Field(
        default=None,
        ge=1,
        description="Change the memory only if this is its version; otherwise 409. Default: any.",
    )

    @model_validator(mode="before")
    @classmethod
    def older_name(cls, value: Any) -> Any:
        """Accept `message` or `data` for `text`, as older clients send."""
        if isinstance(value, dict) and "text" not in value:
            for name in ("message", "data", "memory"):
                if isinstance(value.get(name), str):
                    return {**value, "text": value[name]}
        return value

    def values(self) -> dict[str, Any]:
        """The columns to change. An explicit null clears expiration_date; its absence does not."""
        values: dict[str, Any] = {}
        if self.text is not None:
            values["text"] = self.text
        if self.metadata is not None:
            values["metadata"] = self.metadata
        if self.timestamp is not None:
            values |= dict.fromkeys(("said_at", "valid_from", "created_at"), self.timestamp)
        if "expiration_date" in self.model_fields_set:
            values["expiration_date"] = self.expiration_date
        if self.pinned is not None:
            values["pinned"] = self.pinned
        return values


def memory_id(value: object) -> UUID:
    """Parse a memory id. Errors: ValueError."""
    try:
        return UUID(str(value))
    except ValueError:
        raise ValueError("memory_id should be a valid UUID") from None


MemoryId = Annotated[UUID, BeforeValidator(memory_id)]


class BatchEdit(UpdateRequest):
    """Changes of one memory in a batch."""

    memory_id: MemoryId

    @model_validator(mode="after")
    def something(self) -> BatchEdit:
        """Require at least one change."""
        if not self.values():
            raise ValueError(NOTHING_TO_CHANGE)
        return self


def few(value: object, done: str) -> object:
    """Refuse more than MOST_AT_ONCE memories. Errors: ValueError."""
    if isinstance(value, list) and len(value) > MOST_AT_ONCE:
        raise ValueError(f"Maximum of {MOST_AT_ONCE} memories can be {done} in a single request")
    return value


class BatchUpdateRequest(Request):
    """Changes of many memories."""

    memories: Annotated[list[BatchEdit], BeforeValidator(partial(few, done="updated"))]

    @field_validator("memories")
    @classmethod
    def each_once(cls, value: list[BatchEdit]) -> list[BatchEdit]:
        """Refuse a memory that is listed twice."""
        times = Counter(edit.memory_id for edit in value)
        if twice := next((memory_id for memory_id, count in times.items() if count > 1), None):
            raise ValueError(f"memory {twice} is named twice; merge its changes into one")
        return value


class MemoryReference(Request):
    """The id of one memory."""

    memory_id: MemoryId


class BatchDeleteRequest(Request):
    """Ids of memories to delete."""

    memories: Annotated[list[MemoryReference], BeforeValidator(partial(few, done="deleted"))]

    def ids(self) -> list[UUID]:
        """The ids without duplicates."""
        return list(dict.fromkeys(memory.memory_id for memory in self.memories))


class FeedbackRequest(Request):
    """A rating of a memory; null removes an earlier rating."""

    memory_id: MemoryId
    feedback: Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None = None
    feedback_reason: ReasonText | None = None
