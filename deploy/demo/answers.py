"""The API's responses, with the keys that the demo shows. Other keys are ignored."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class AcceptedJson(BaseModel):
    """The response to an add. `ms`: how long the caller waited for it."""

    event_id: str
    status: str
    ms: float = 0.0


class ReceiptLineJson(BaseModel):
    """One fact in a receipt; `id` is the memory it is about."""

    id: str | None
    event: str
    memory: str | None
    old_memory: str | None
    reason: str | None


class StageRunJson(BaseModel):
    """One stage's run."""

    stage: str
    ms: float


class WaitingJson(BaseModel):
    """The reason an event waits."""

    code: str


class BatchJson(BaseModel):
    """The batch in which an event was processed."""

    id: str


class UsageJson(BaseModel):
    """The event's own share of the cost of its batches. `batch`: the newest of them."""

    models: list[str]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    batch: BatchJson | None


class EventJson(BaseModel):
    """An event with its receipt."""

    id: str
    status: str
    results: list[ReceiptLineJson]
    note: str | None
    error: str | None
    code: str | None
    stage: str | None
    waiting: WaitingJson | None
    usage: UsageJson
    stages: list[StageRunJson]
    latency: float | None

    @property
    def ended(self) -> bool:
        """True if the event has ended."""
        return self.status in ("SUCCEEDED", "FAILED")


class EventsJson(BaseModel):
    """A page of events."""

    results: list[EventJson]


class HitJson(BaseModel):
    """One result of a search."""

    memory: str
    score: float
    timestamp: datetime | None


class RelationJson(BaseModel):
    """A relation near the results."""

    source: str
    relationship: str
    target: str
    valid_from: datetime | None


class SearchJson(BaseModel):
    """The response to a search."""

    results: list[HitJson]
    relations: list[RelationJson]


class ChangeJson(BaseModel):
    """One earlier or current state of a memory, and the reason of the change."""

    event: str
    old_memory: str | None
    new_memory: str | None
    reason: str | None


class MemoryJson(BaseModel):
    """A memory."""

    id: str
    memory: str
    user_id: str | None


class MemoriesJson(BaseModel):
    """A page of memories."""

    count: int
    results: list[MemoryJson]
