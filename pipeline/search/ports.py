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

    accesses: AccessCounts
    events: Events
    graph: Graph
    memories: Memories
    passages: Passages
    turn_vectors: TurnVectors

    async def now(self) -> datetime:
        """The database's time."""
