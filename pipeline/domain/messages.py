"""Messages: turns of a conversation, with their place in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    # What a tool or function answered: context for the turns around it, said by no speaker.
    TOOL = "tool"


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
