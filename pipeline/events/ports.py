"""Stores of the ledger that the service of events uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.events.cancel import Cancellation
from pipeline.events.dead_letters import DeadLetters
from pipeline.events.undo import Undo
from pipeline.ingest.ports import IngestStores


class EventStores(Protocol):
    """The part of the ledger that cancels, replays and undoes events."""

    cancellation: Cancellation
    dead_letters: DeadLetters
    undo: Undo


class RehearsalStores(EventStores, IngestStores, Protocol):
    """The part of the ledger that a dry run of a replay needs."""
