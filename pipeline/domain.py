"""The values every other module speaks in: frozen, validated at the edge, free of I/O.

An event is what a client polls; a batch is the run of events one activation takes through the
stages together; a fact is what a model found in a message; a memory is what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Generic, NewType, TypeVar
from uuid import UUID, uuid5

# Namespace of every derived id: the same event and ordinal give the same id on every retry.
MEMLANE = UUID("6d656d6c-616e-5500-8000-000000000001")

T = TypeVar("T")


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    # What a tool or function answered: context for the turns around it, said by no speaker.
    TOOL = "tool"


class Outcome(StrEnum):
    """What became of one fact. The four words of the Mem0 clients."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


class Status(StrEnum):
    """State of an event. docs/reference/failures.md shows the text below each member."""

    PENDING = "PENDING"
    """Accepted and durable; waits in its lane. A replay puts a FAILED event back here."""
    RUNNING = "RUNNING"
    """In a stage, or between two. While the event waits for a model or a store, `waiting` names the
    code and the time of the next attempt.
    """
    SUCCEEDED = "SUCCEEDED"
    """All effects are committed and visible in get, list, search and graph."""
    FAILED = "FAILED"
    """Ended without effects, with a `code`. It can be replayed."""
    CANCELLED = "CANCELLED"
    """Cancelled by request before its memories were stored. Clients see FAILED with code CANCELLED.
    """


class Access(StrEnum):
    """What an API key may do; each includes the one before."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, needed: Access) -> bool:
        order = list(Access)
        return order.index(self) >= order.index(needed)


class StageName(StrEnum):
    EXTRACT = "extract"
    RETRIEVE = "retrieve"
    CONSOLIDATE = "consolidate"
    APPLY = "apply"
    RELATE = "relate"


class FailureCode(StrEnum):
    """Cause of a FAILED event: a closed set, so that clients can branch on it.

    docs/reference/failures.md shows the text below each member.
    """

    INVALID_INPUT = "INVALID_INPUT"
    """The request cannot be processed. The error text says what to change."""
    LLM_REJECTED = "LLM_REJECTED"
    """The provider refuses the call: wrong key, unknown model, content policy, prompt too long.
    Correct the setting, then replay the event.
    """
    LLM_BAD_OUTPUT = "LLM_BAD_OUTPUT"
    """The model's answer cannot be parsed, even after one repair request. Replay the event, with
    another model if it happens often.
    """
    LLM_UNAVAILABLE = "LLM_UNAVAILABLE"
    """The model or embedder cannot be reached: connection error, 5xx, or 429 after the retries
    within the call. The event waits and goes on by itself.
    """
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    """The vector store or another projection cannot be reached. The event waits and goes on by
    itself.
    """
    POISON_CRASH = "POISON_CRASH"
    """The event crashed its worker `MEMLANE_MAX_ATTEMPTS` times. The other events of its batch and
    lane go on.
    """
    DEADLINE = "DEADLINE"
    """The event waited longer than `MEMLANE_OUTAGE_BUDGET_S`. The error text names the outage.
    Replay the event.
    """
    CANCELLED = "CANCELLED"
    """Cancelled by request."""
    INTERNAL = "INTERNAL"
    """A defect in Memlane. The log line `stage_crashed` has the stack trace."""


ProjectId = NewType("ProjectId", UUID)
"""The tenant: a project id that comes from an API key or from a row of the ledger.

A store takes this type and no plain UUID, so a query without a tenant, or with another id in its
place, does not type-check. tests/house lists the few places that make one.
"""

OrganizationId = NewType("OrganizationId", UUID)
"""The organization of an authenticated API key, or of a row of the ledger."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories: the unit of ordering. One scope has one lane."""

    project_id: ProjectId
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @property
    def lane_id(self) -> UUID:
        """The same scope is the same lane in every process, without a look-up."""
        return _lane_id(self)

    @property
    def owner(self) -> str:
        """The widest id given: it picks the vector bucket, so an owner's memories lie together."""
        return self.user_id or self.agent_id or self.app_id or self.run_id or ""


@lru_cache(maxsize=1_000)  # an event asks a dozen times
def _lane_id(scope: Scope) -> UUID:
    ids = (scope.user_id, scope.agent_id, scope.app_id, scope.run_id)
    # Length-prefixed, so no choice of ids can collide with another one.
    key = "".join("-" if part is None else f"{len(part)}:{part}" for part in ids)
    return uuid5(scope.project_id, key)


@dataclass(frozen=True, slots=True)
class Omission:
    """What of a message was not kept: its part (from 0; None: all of it), what it is, and why."""

    part: int | None
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. `name` is the speaker's name where the caller gave one."""

    role: Role
    content: str
    name: str | None = None
    omitted: tuple[Omission, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact was said: the event in its batch and the message in that event, from 0."""

    event: int
    message: int


@dataclass(frozen=True, slots=True)
class SourcedMessage:
    """A message as a model sees it: with its place in the batch and the time it was said."""

    source: Source
    message: Message
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the caller asks of extraction, per project or per call."""

    custom: str | None = None
    includes: str | None = None
    excludes: str | None = None
    # Of what the assistant says about itself.
    agent: str | None = None
    # What each category is for, by its name; None means the built-in ones.
    categories: Mapping[str, str] | None = None

    def or_else(self, general: Mapping[str, Any]) -> Instructions:
        """These, and the general ones by name where these say nothing."""
        unsaid = {name: said for name, said in general.items() if getattr(self, name) is None}
        return replace(self, **unsaid)


@dataclass(frozen=True, slots=True)
class Fact:
    """One self-contained statement, in the third person, with its relative dates made absolute.

    `categories` are names out of those that were asked for.
    """

    text: str
    source: Source
    attributed_to: Role = Role.USER
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory shown to the decider beside new facts.

    `similarity` is the cosine (-1..1) to the nearest of the new facts; 1.0 for an equal text.
    """

    memory_id: UUID
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one fact.

    `fact` is its 0-based position; `memory_id` the target of UPDATE, DELETE and NOOP;
    `text` what is stored after an ADD or UPDATE; `reason` one sentence for the receipt.
    """

    fact: int
    outcome: Outcome
    reason: str
    text: str | None = None
    memory_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph; `kind` is a lower-case word such as person, place, organization."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed edge in the words of the field: source --relation--> destination.

    `fact` is the 0-based position of the fact it was read from.
    """

    source: Entity
    relation: str
    destination: Entity
    fact: int


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """An edge that is current in the graph, offered to a model as something that may have ended."""

    relation_id: UUID
    source: str
    relation: str
    destination: str


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """New edges, and the ids of current edges that the new facts end."""

    relations: tuple[Relation, ...] = ()
    ended: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost. `cost_usd` is None where the price is not known."""

    model: str = ""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [u.cost_usd for u in (self, other) if u.cost_usd is not None]
        return Usage(
            model=other.model or self.model,
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A model's answer and what it cost. `note` explains an event without facts on its receipt."""

    value: T
    usage: Usage = field(default_factory=Usage)
    note: str | None = None


class EventType(StrEnum):
    """What an event was asked to do."""

    ADD = "ADD"
    DELETE_ALL = "DELETE_ALL"
    DELETE_USER = "DELETE_USER"
    EXPORT = "EXPORT"
    SUMMARY = "SUMMARY"


@dataclass(frozen=True, slots=True)
class Question:
    """What an event asks of the memories instead of adding to them.

    `filters` as the caller wrote them; `shape` is the JSON schema of the answer.
    """

    kind: EventType
    filters: Mapping[str, Any]
    shape: Mapping[str, Any]
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class AddOptions:
    """What a caller may say about an add beside its messages. Equal options may share a batch."""

    infer: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)
    immutable: bool = False
    expiration_date: date | None = None
    instructions: Instructions = field(default_factory=Instructions)
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One accepted add inside an activation."""

    id: UUID
    seq: int
    options: AddOptions
    messages: Sequence[SourcedMessage]
    replays: int = 0


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
