"""Stores of the ledger that search uses."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pipeline.events.store import Events
from pipeline.graph.store import Graph
from pipeline.memories.accesses import AccessCounts
from pipeline.memories.store import Memories
from pipeline.search.store import Passages
from pipeline.turns.vectors import TurnVectors


class SearchStores(Protocol):
    """The part of the ledger that searches read."""

    @property
    def accesses(self) -> AccessCounts:
        """Accesses of memories, for decay."""

    @property
    def events(self) -> Events:
        """Numbers of pending events."""

    @property
    def graph(self) -> Graph:
        """Relations near a query."""

    @property
    def memories(self) -> Memories:
        """Memories, for explanations."""

    @property
    def passages(self) -> Passages:
        """Memories and turns, as search reads them."""

    @property
    def turn_vectors(self) -> TurnVectors:
        """Keys of the turns in the vector index."""

    async def now(self) -> datetime:
        """The database's time."""
