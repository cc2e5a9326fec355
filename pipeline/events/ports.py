"""Stores of the ledger that the service of events uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.events.cancel import Cancellation
from pipeline.events.dead_letters import DeadLetters
from pipeline.events.undo import Undo
from pipeline.ingest.ports import IngestStores


class EventStores(Protocol):
    """The part of the ledger that cancels, replays and undoes events."""

    @property
    def cancellation(self) -> Cancellation:
        """Cancel."""

    @property
    def dead_letters(self) -> DeadLetters:
        """Replay."""

    @property
    def undo(self) -> Undo:
        """Undo."""


class RehearsalStores(EventStores, IngestStores, Protocol):
    """The part of the ledger that a dry run of a replay needs."""
