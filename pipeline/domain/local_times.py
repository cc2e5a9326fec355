"""Times on the clock of the speaker: the day that "yesterday" is counted from."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def offset_of(time: datetime | None) -> int | None:
    """Minutes that the clock is ahead of UTC; None for UTC, and without a time."""
    offset = time.utcoffset() if time is not None else None
    return round(offset / timedelta(minutes=1)) or None if offset is not None else None


def at_offset(time: datetime, minutes: int | None) -> datetime:
    """The same instant on a clock that is ahead of UTC by these minutes."""
    return time.astimezone(timezone(timedelta(minutes=minutes or 0)))
