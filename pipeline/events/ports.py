"""Stores of the ledger that the service of events uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.events.cancel_and_replay import CancelAndReplay
from pipeline.events.undo import Undo
from pipeline.ingest.ports import IngestStores


class EventStores(Protocol):
    """The part of the ledger that cancels, replays and undoes events."""

    @property
    def cancel_and_replay(self) -> CancelAndReplay:
        """Cancel and replay."""

    @property
    def undo(self) -> Undo:
        """Undo."""


class RehearsalStores(EventStores, IngestStores, Protocol):
    """The part of the ledger that a dry run of a replay needs."""
