"""The API's responses, with the keys that the demo shows. Other keys are ignored."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class Accepted(BaseModel):
    """The response to an add. `ms`: how long the caller waited for it."""

    event_id: str
    status: str
    ms: float = 0.0


class Line(BaseModel):
    """One fact in a receipt; `id` is the memory it is about."""

    id: str | None
    event: str
    memory: str | None
    old_memory: str | None
    reason: str | None


class StageRun(BaseModel):
    """One stage's run."""

    stage: str
    ms: float


class Waiting(BaseModel):
    """The reason an event waits."""

    code: str


class Batch(BaseModel):
    """The batch in which an event was processed."""

    id: str


class Usage(BaseModel):
    """The event's own share of the cost of its batches. `batch`: the newest of them."""

    models: list[str]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    batch: Batch | None


class Event(BaseModel):
    """An event with its receipt."""

    id: str
    status: str
    results: list[Line]
    note: str | None
    error: str | None
    code: str | None
    stage: str | None
    waiting: Waiting | None
    usage: Usage
    stages: list[StageRun]
    latency: float | None

    @property
    def ended(self) -> bool:
        """True if the event has ended."""
        return self.status in ("SUCCEEDED", "FAILED")


class Events(BaseModel):
    """A page of events."""

    results: list[Event]


class Hit(BaseModel):
    """One result of a search."""

    memory: str
    score: float
    timestamp: datetime | None


class Relation(BaseModel):
    """A relation near the results."""

    source: str
    relationship: str
    target: str
    valid_from: datetime | None


class Found(BaseModel):
    """The response to a search."""

    results: list[Hit]
    relations: list[Relation]


class Change(BaseModel):
    """One earlier or current state of a memory, and the reason of the change."""

    event: str
    old_memory: str | None
    new_memory: str | None
    reason: str | None


class Memory(BaseModel):
    """A memory."""

    id: str
    memory: str
    user_id: str | None


class Memories(BaseModel):
    """A page of memories."""

    count: int
    results: list[Memory]
