"""Messages of a conversation, with their position in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """Author of a message. TOOL is the result of a tool call: context, without a speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Omission:
    """A part of a message that was not stored: its 0-based index (None: all), kind and reason."""

    part: int | None
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. `name` is the speaker's name, if the caller gave one."""

    role: Role
    content: str
    name: str | None = None
    omitted: tuple[Omission, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Position of a message: 0-based index of its event in the batch, and of it in the event."""

    event: int
    message: int


@dataclass(frozen=True, slots=True)
class SourcedMessage:
    """A message with its position in the batch and its time, as it is shown to a model."""

    source: Source
    message: Message
    said_at: datetime
