"""The demo's conversation, parsed from conversation.json."""

from __future__ import annotations

from datetime import datetime
from importlib import resources

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Exchange(_Value):
    """A message of the user and the assistant's answer: one add."""

    user: str = Field(min_length=1)
    assistant: str = Field(min_length=1)


class Session(_Value):
    """One chat. `at`: its time, months before it is posted."""

    title: str
    at: AwareDatetime
    turns: tuple[Exchange, ...] = Field(min_length=1)

    @property
    def day(self) -> str:
        """The session's date."""
        return date_text(self.at)


class Person(_Value):
    """A user of the burst. Each person has a scope."""

    speaker: str
    says: tuple[str, ...] = Field(min_length=1)


class Story(_Value):
    """The sessions and questions of the demo."""

    speaker: str
    sessions: tuple[Session, ...]
    questions: tuple[str, ...]
    burst: tuple[Person, ...]


def load() -> Story:
    """The story that is packaged with the demo."""
    text = resources.files(__package__).joinpath("conversation.json").read_text("utf-8")
    return Story.model_validate_json(text)


def date_text(moment: datetime) -> str:
    """A date for people: 2 March 2026."""
    return f"{moment.day} {moment:%B %Y}"
