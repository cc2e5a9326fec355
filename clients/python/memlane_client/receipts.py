"""Answers of the API as types. Fields that a newer server adds are kept as extra attributes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED"]


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Accepted(Answer):
    """An accepted add."""

    event_id: str


class ReceiptLine(Answer):
    """The outcome of one fact: ADD, UPDATE, DELETE or NOOP."""

    id: str | None
    event: str
    memory: str | None
    old_memory: str | None = None
    reason: str | None = None
    message: int | None = None
    conflict_id: str | None = None
    suggestion_id: str | None = None


class Usage(Answer):
    """Model calls of an event, with tokens and cost."""

    models: list[str] = Field(default_factory=list)
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


class Wait(Answer):
    """The reason why an event waits, and the time of the next attempt at the latest."""

    code: str
    cause: str | None = None
    until: datetime | None = None


class Receipt(Answer):
    """An event. `results` has one line for each fact once it has ended."""

    id: str
    status: Status
    priority: Literal["normal", "low"] = "normal"
    results: list[ReceiptLine]
    note: str | None = None
    error: str | None = None
    code: str | None = None
    stage: str | None = None
    waiting: Wait | None = None
    graph_status: str | None = None
    usage: Usage = Usage()
    created_at: datetime | None = None
    completed_at: datetime | None = None
    latency: float | None = None

    @property
    def ended(self) -> bool:
        """True if the event has ended."""
        return self.status in ("SUCCEEDED", "FAILED")

    @property
    def memories(self) -> list[str]:
        """Texts of the memories that the event added or changed."""
        return [
            line.memory for line in self.results if line.memory and line.event in ("ADD", "UPDATE")
        ]


class Progress(Answer):
    """A change of an event: its status, stage or wait."""

    status: Status
    stage: str | None = None
    waiting: Wait | None = None


class MemoryRow(Answer):
    """A stored memory, or a verbatim turn of a search."""

    id: str
    memory: str
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class SearchHit(MemoryRow):
    """One result of a search. `type` is fact or turn."""

    type: str = "fact"
    score: float


class SearchAnswer(Answer):
    """Results of a search, best first. `context` is there if the search had `max_tokens`.

    `pending`: number of unfinished events of the ids in the filter; None if it names no single ids.
    `after_event_status`, `after_event_ended`: of the event that the search waited for.
    """

    results: list[SearchHit]
    relations: list[dict[str, Any]] = Field(default_factory=list)
    context: str | None = None
    context_tokens: int | None = None
    degraded: bool = False
    pending: int | None = 0
    after_event_status: str | None = None
    after_event_ended: bool | None = None

    @property
    def event_status(self) -> str | None:
        """Same as `after_event_status`."""
        return self.after_event_status


class MemoryPage(Answer):
    """A page of memories, newest first."""

    count: int
    next: str | None = None
    results: list[MemoryRow]
