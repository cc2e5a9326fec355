"""The stores of the ledger that events uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.events.cancel_and_replay import Recourse
from pipeline.events.undo import Undo


class EventStores(Protocol):
    @property
    def recourse(self) -> Recourse: ...

    @property
    def undo(self) -> Undo: ...
