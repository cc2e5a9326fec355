"""The API's responses, with the keys that the demo shows. Other keys are ignored."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class DemoAccepted(BaseModel):
    """The response to an add. `ms`: how long the caller waited for it."""

    event_id: str
    status: str
    ms: float = 0.0


class DemoReceiptLine(BaseModel):
    """One fact in a receipt; `id` is the memory it is about."""

    id: str | None
    event: str
    memory: str | None
    old_memory: str | None
    reason: str | None


class DemoStageRun(BaseModel):
    """One stage's run."""

    stage: str
    ms: float


class DemoWaiting(BaseModel):
    """The reason an event waits."""

    code: str


class DemoBatch(BaseModel):
    """The batch in which an event was processed."""

    id: str


class DemoUsage(BaseModel):
    """The event's own share of the cost of its batches. `batch`: the newest of them."""

    models: list[str]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    batch: DemoBatch | None


class DemoEvent(BaseModel):
    """An event with its receipt."""

    id: str
    status: str
    results: list[DemoReceiptLine]
    note: str | None
    error: str | None
    code: str | None
    stage: str | None
    waiting: DemoWaiting | None
    usage: DemoUsage
    stages: list[DemoStageRun]
    latency: float | None

    @property
    def ended(self) -> bool:
        """True if the event has ended."""
        return self.status in ("SUCCEEDED", "FAILED")


class DemoEvents(BaseModel):
    """A page of events."""

    results: list[DemoEvent]


class DemoHit(BaseModel):
    """One result of a search."""

    memory: str
    score: float
    timestamp: datetime | None


class DemoRelation(BaseModel):
    """A relation near the results."""

    source: str
    relationship: str
    target: str
    valid_from: datetime | None


class DemoSearch(BaseModel):
    """The response to a search."""

    results: list[DemoHit]
    relations: list[DemoRelation]


class DemoChange(BaseModel):
    """One earlier or current state of a memory, and the reason of the change."""

    event: str
    old_memory: str | None
    new_memory: str | None
    reason: str | None


class DemoMemory(BaseModel):
    """A memory."""

    id: str
    memory: str
    user_id: str | None


class DemoMemories(BaseModel):
    """A page of memories."""

    count: int
    results: list[DemoMemory]
