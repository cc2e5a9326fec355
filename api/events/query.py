"""The query string of a list of events."""

# No `from __future__ import annotations`: FastAPI cannot resolve such annotations of a class.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from api.events.requests import UNRECORDED
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import EventType, Status
from pipeline.domain.filters import EventFilter, period

# The types that clients name; reads are not recorded.
EVENT_TYPES = [*EventType, *UNRECORDED]


@dataclass(frozen=True, slots=True)
class EventsQuery:
    """Filters of events. `status` and `event_type` are words separated by commas."""

    status: str | None = None
    event_type: str | None = None
    start_date: str | None = None
    end_date: str | None = None

    def filter(self, ids: Mapping[str, str]) -> EventFilter:
        """The same conditions, and these entity ids. Errors: InvalidInput."""
        return EventFilter(
            ids,
            kinds=_words("event_type", self.event_type, EVENT_TYPES) if self.event_type else (),
            statuses=_statuses(self.status) if self.status else (),
            created=period(self.start_date, self.end_date),
        )


EventsQueried = Annotated[EventsQuery, Depends()]


def _statuses(value: str) -> list[str]:
    """A client's statuses as the ledger's: FAILED includes CANCELLED. Errors: InvalidInput."""
    words = _words("status", value, list(Status))
    return [*words, Status.CANCELLED] if Status.FAILED in words else words


def _words(name: str, value: str, known: list[str]) -> list[str]:
    words = [word.strip().upper() for word in value.split(",")]
    if not set(words) <= set(known):
        raise InvalidInput(f"{name} is one of {', '.join(known)}.")
    return words
