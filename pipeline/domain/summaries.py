"""Values of rolling summaries of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pipeline.domain.events import Instructions
from pipeline.domain.messages import SourcedMessage
from pipeline.domain.modes import Budgets, Mode
from pipeline.domain.tenants import ProjectId


@dataclass(frozen=True, slots=True)
class SummaryAfter:
    """A new version is due after this number of messages, or of their estimated tokens."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SummaryUpdate:
    """Messages to merge into a summary, oldest first. `previous`: the summary so far, if any."""

    previous: str | None
    messages: Sequence[SourcedMessage]
    instructions: Instructions


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """A summary that is due, as it was read; the next version counts only if it is still so.

    `version`: the newest one that was ever made. `epoch`: that of its lane. `more`: there are
    further messages after `until_seq`.
    """

    lane_id: UUID
    project_id: ProjectId
    user_id: str | None
    mode: Mode
    budgets: Budgets
    version: int
    epoch: int
    tries: int
    after_seq: int
    until_seq: int
    more: bool
    request: SummaryUpdate


@dataclass(frozen=True, slots=True)
class SummaryVersion:
    """One version of a summary. `current`: false for one that a newer version replaced."""

    version: int
    text: str
    current: bool
    messages: int
    model: str
    prompt: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SummaryState:
    """Progress of a scope's next version: messages since the last one, and the last failure."""

    messages: int = 0
    tokens: int = 0
    due_at: datetime | None = None
    reason: str | None = None
