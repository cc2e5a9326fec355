"""Events: status, stages, failure codes and options of an add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pipeline.domain.messages import Message, SourcedMessage
from pipeline.domain.modes import Mode
from pipeline.domain.versions import Snapshot


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


class StageName(StrEnum):
    """Stages of the pipeline, in the order in which a batch runs through them."""

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
    """The provider refuses the call. A wrong key, an account without credit or an unknown model
    (HTTP 401 to 404): the event waits, `waiting` names the setting and quotes the provider, and it
    goes on by itself once the setting is right; after `MEMLANE_OUTAGE_BUDGET_S` it fails. A refusal
    of one prompt, by content policy or length: the event fails at once.
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
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    """A budget is used up, and this operation cannot do without a model: an export, a summary, or
    the replay of a scope. Raise the budget or wait for its next period. Adds never fail with this
    code; see [Modes and budgets](../howto/modes.md).
    """
    CANCELLED = "CANCELLED"
    """Cancelled by request."""
    INTERNAL = "INTERNAL"
    """A defect in Memlane. The log line `stage_crashed` has the stack trace."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions for extraction, set per project or per call.

    `agent`: for facts about the assistant itself. `categories`: a description per category name;
    None means the built-in categories.
    """

    custom: str | None = None
    includes: str | None = None
    excludes: str | None = None
    agent: str | None = None
    categories: Mapping[str, str] | None = None

    def or_else(self, defaults: Mapping[str, Any]) -> Instructions:
        """These instructions, with `defaults` in place of those that are None."""
        missing = {name: text for name, text in defaults.items() if getattr(self, name) is None}
        return replace(self, **missing)


class Priority(StrEnum):
    """Class in which an event waits for a worker."""

    NORMAL = "normal"
    """Events that a person or an agent waits for."""
    LOW = "low"
    """Back-fill, such as an import: it runs behind the events of normal priority."""


class EventType(StrEnum):
    """Operation that an event carries out."""

    ADD = "ADD"
    DELETE_ALL = "DELETE_ALL"
    DELETE_USER = "DELETE_USER"
    EXPORT = "EXPORT"
    SUMMARY = "SUMMARY"
    SUGGESTION = "SUGGESTION"
    DRY_RUN = "DRY_RUN"
    RESOLUTION = "RESOLUTION"
    INCOGNITO = "INCOGNITO"
    PROFILE = "PROFILE"
    IMPORT = "IMPORT"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the memories, which adds nothing: an EXPORT, a SUMMARY or a PROFILE.

    `filters` as the caller wrote them; `shape` is the JSON schema of the answer. `snapshot`: None
    for the current memories.
    """

    kind: EventType
    filters: Mapping[str, Any]
    shape: Mapping[str, Any]
    instructions: str | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The messages of an add whose receipt is computed and not applied: an event of kind DRY_RUN.

    They are no messages of the scope: no search and no prompt of another event contains them.
    `id`: that of the event, so that a dry run has a batch of its own. `said_at` None: when the
    event was accepted.
    """

    id: UUID
    messages: tuple[Message, ...]
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AddOptions:
    """Options of an add. Only events with equal options share a batch.

    `procedural`: store one summary of the messages, which are an agent's work. `mode`: None for the
    mode of the project. `graph`: None for the setting of the project. `records`: the lines of an
    import as a JSON array, until their rows are stored. `priority`: see docs/howto/priority.md.
    `utc_offset`: of the clock of the speakers, in minutes; None for UTC.
    """

    infer: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)
    immutable: bool = False
    expiration_date: date | None = None
    instructions: Instructions = field(default_factory=Instructions)
    question: Question | None = None
    procedural: bool = False
    mode: Mode | None = None
    dry_run: DryRun | None = None
    graph: bool | None = None
    records: str | None = None
    priority: Priority = Priority.NORMAL
    utc_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An accepted add, as its activation reads it.

    `replays`: number of times it was replayed. `traceparent`: the span of the request that added it
    (W3C Trace Context).
    """

    id: UUID
    seq: int
    options: AddOptions
    messages: Sequence[SourcedMessage]
    replays: int = 0
    traceparent: str | None = None


FINAL = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
