"""A lane's work: the hint, the activation that holds the lane, and its batch of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pipeline.domain.events import AddOptions, Event, StageName
from pipeline.domain.messages import Message, SourcedMessage
from pipeline.domain.scope import Scope

"""The tenant: a project id that comes from an API key or from a row of the ledger.

A store takes this type and no plain UUID, so a query without a tenant, or with another id in its
place, does not type-check. tests/house lists the few places that make one.
"""
"""The organization of an authenticated API key, or of a row of the ledger."""


@dataclass(frozen=True, slots=True)
class Wake:
    """What a hint says: this lane, as of this fence, has this stage to do.

    `at_once`: the worker goes on without a message in between, because a caller waits for the
    event, or because the stage takes less CPU than a message.
    """

    lane_id: UUID
    fence: int
    stage: StageName
    at_once: bool = field(default=False, compare=False)


# A lane, its fence and the worker that has it.
Hold = tuple[UUID, int, UUID]


@dataclass(frozen=True, slots=True)
class Activation:
    """One worker's hold on a lane: valid as long as nobody has raised the fence.

    `attempts`: how often this stage was begun and did not end, this time included where it is
    `counted`. A lane that was not counted when it was claimed is a suspect: its earlier attempts
    ended with their workers.
    """

    lane_id: UUID
    fence: int
    owner: UUID
    stage: StageName
    scope: Scope
    attempts: int
    counted: bool
    waits: int
    accepted_seq: int
    batch_id: UUID | None

    @property
    def hold(self) -> Hold:
        return self.lane_id, self.fence, self.owner

    @property
    def earlier_attempts(self) -> int:
        return self.attempts - self.counted


@dataclass(frozen=True, slots=True)
class Override:
    """What a replay asks for in place of the configured models, by name.

    `recorded`: the batch whose saved answers are given again, so that no model is asked.
    """

    llm: str | None = None
    embedder: str | None = None
    recorded: UUID | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The events that go through the stages together, and what the scope said before them.

    `outputs` holds what earlier stages put out, as JSON values by stage. `reconsidered`: how often
    its decisions were made anew because a person had changed what they were about.
    """

    id: UUID
    scope: Scope
    events: Sequence[Event]
    context: Sequence[Message]
    outputs: Mapping[str, Any]
    age_s: float
    override: Override = Override()
    reconsidered: int = 0

    @property
    def options(self) -> AddOptions:
        """Equal for every event of a batch."""
        return self.events[0].options

    @property
    def messages(self) -> list[SourcedMessage]:
        return [message for event in self.events for message in event.messages]

    @property
    def replayed(self) -> bool:
        """Its events had their turn before: what they say may have been overtaken since."""
        return any(event.replays for event in self.events)
