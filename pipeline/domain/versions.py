"""Versions: the point in time of a read, in the system and in the world."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple


class SnapshotKind(NamedTuple):
    """The parts of a snapshot that decide the form of its statements, without the times."""

    as_of: bool
    valid_at: bool
    superseded: bool
    merged: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The states of memories that a read returns; by default the current ones.

    `as_of`: time in the system: the states stored at that time. `valid_at`: time in the world: of
    the statements stored by then, the ones that held at that time. A state counts from its time on,
    up to but not including the time of the next one.

    `superseded`: also statements that a later one replaced. `merged`: also memories that were
    merged into another one. Both have no effect with `valid_at`, which returns one of several.
    """

    as_of: datetime | None = None
    valid_at: datetime | None = None
    superseded: bool = False
    merged: bool = False

    @property
    def is_current(self) -> bool:
        """True for a read of the current states only."""
        return self == CURRENT

    @property
    def kind(self) -> SnapshotKind:
        """The form of its statements."""
        return SnapshotKind(
            self.as_of is not None, self.valid_at is not None, self.superseded, self.merged
        )

    @property
    def values(self) -> dict[str, Any]:
        """The times, as parameters of its statements."""
        times = {"as_of": self.as_of, "valid_at": self.valid_at}
        return {name: time for name, time in times.items() if time is not None}


CURRENT = Snapshot()
