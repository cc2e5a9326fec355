"""What the API answers, as far as the demo shows it. Keys it does not name are left out."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class Accepted(BaseModel):
    """The answer to an add; `ms` is what the caller waited for it."""

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
    stage: str
    ms: float


class Waiting(BaseModel):
    code: str


class Batch(BaseModel):
    id: str


class Usage(BaseModel):
    """The event's own share of what its batches cost; `batch` is the newest of them."""

    models: list[str]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    batch: Batch | None


class Event(BaseModel):
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
        return self.status in ("SUCCEEDED", "FAILED")


class Events(BaseModel):
    results: list[Event]


class Hit(BaseModel):
    memory: str
    score: float
    timestamp: datetime | None


class Relation(BaseModel):
    source: str
    relationship: str
    target: str
    valid_from: datetime | None


class Found(BaseModel):
    results: list[Hit]
    relations: list[Relation]


class Change(BaseModel):
    """One state a memory had, and why it came to be."""

    event: str
    old_memory: str | None
    new_memory: str | None
    reason: str | None


class Memory(BaseModel):
    id: str
    memory: str
    user_id: str | None


class Memories(BaseModel):
    count: int
    results: list[Memory]
