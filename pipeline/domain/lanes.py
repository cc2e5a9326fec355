"""Values of a lane's work: the hint, the activation that owns the lane, and its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pipeline.domain.events import AddOptions, Event, StageName
from pipeline.domain.graph.values import GraphTypes
from pipeline.domain.messages import Message, Source, SourcedMessage
from pipeline.domain.modes import NO_BUDGETS, Budgets, Mode
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId


@dataclass(frozen=True, slots=True)
class Hint:
    """A message to a worker: run this stage of this lane, if the fence is still the same.

    `at_once`: the worker runs the stage without a message in between, because a caller waits for
    the event, or because the stage costs less CPU than a message. `low`: all events that wait in
    the lane have low priority. `project_id`: that of the lane, if the hint follows a stage.
    """

    lane_id: UUID
    fence: int
    stage: StageName
    at_once: bool = field(default=False, compare=False)
    low: bool = field(default=False, compare=False)
    project_id: UUID | None = field(default=None, compare=False)


# A project, and whether all events that wait in the lane have low priority.
LaneClass = tuple[UUID, bool]
# A lane's id, its fence and the id of the worker that owns it.
Hold = tuple[UUID, int, UUID]


@dataclass(frozen=True, slots=True)
class Activation:
    """Ownership of a lane by one worker, valid until the fence is raised.

    `attempts`: number of times this stage was started and did not end, including this one if
    `counted` is true. A lane that is claimed without being counted is a suspect: its worker
    crashed during the earlier attempts. `low`: at the claim, all events that waited in the lane had
    low priority.
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
    low: bool = False

    @property
    def hold(self) -> Hold:
        """The lane, fence and owner that a write must still find."""
        return self.lane_id, self.fence, self.owner

    @property
    def earlier_attempts(self) -> int:
        """Number of attempts before this one."""
        return self.attempts - self.counted


@dataclass(frozen=True, slots=True)
class Override:
    """Names of the models a replay uses in place of the configured ones.

    `recorded`: id of the batch whose saved answers are used, so that no model is called.
    """

    llm: str | None = None
    embedder: str | None = None
    recorded: UUID | None = None


# Wait code of a lane whose events wait for further turns; no failure.
GATHERING = "GATHERING"


@dataclass(frozen=True, slots=True)
class Gather:
    """Limits of gathering: turns run with this many messages or tokens, or after `seconds`."""

    messages: int = 12
    tokens: int = 1_000
    seconds: float = 60.0


def gather_of(stored: Mapping[str, Any] | None) -> Gather | None:
    """The limits from their stored form; None if the project does not gather."""
    return Gather(**stored) if stored else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that run through the stages together.

    `context`: the scope's messages before them. `outputs`: JSON output of the finished stages, by
    stage. `age_s`: seconds since the first of its events was accepted. `started_s`: seconds since a
    worker first took one of them. `reconsidered`: number of times its decisions were repeated
    because a user had edited the memories they name. `mode`: the mode that its options or its
    project ask for. `payer`: the project that pays for it; for a replay in a shadow that is not the
    scope's. `summary`: that of the conversation before the events, for EXTRACT. `gather`: limits of
    the project's gathering.
    `answers_kept`: a dry run in this scope has kept answers of models.
    `graph`: False for no graph, None for the server's setting. `fence`: that of its activation.
    `unreadable`: its rows are no valid values, so its events have no messages and can only fail.
    """

    id: UUID
    scope: Scope
    events: Sequence[Event]
    context: Sequence[Message]
    outputs: Mapping[str, Any]
    age_s: float
    started_s: float = 0.0
    override: Override = Override()
    reconsidered: int = 0
    mode: Mode = Mode.CONSOLIDATE
    budgets: Budgets = NO_BUDGETS
    payer: ProjectId | None = None
    summary: str | None = None
    gather: Gather | None = None
    answers_kept: bool = False
    graph_types: GraphTypes = field(default_factory=GraphTypes)
    graph: bool | None = None
    fence: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    unreadable: bool = False

    @property
    def options(self) -> AddOptions:
        """Options of the batch: all its events have the same."""
        return self.events[0].options

    @property
    def messages(self) -> list[SourcedMessage]:
        """Messages of all events, in order."""
        return [message for event in self.events for message in event.messages]

    def said_at(self, source: Source) -> datetime:
        """Time of the message at this position."""
        return self.events[source.event].messages[source.message].said_at

    @property
    def replayed(self) -> bool:
        """True if an event was processed before, so that newer events may contradict it."""
        return any(event.replays for event in self.events)
