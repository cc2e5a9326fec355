"""The stores of the ledger that search uses."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pipeline.events.store import Events
from pipeline.graph.store import Graph
from pipeline.memories.store import Memories
from pipeline.search.store import Passages
from pipeline.turns.vectors import TurnVectors


class SearchStores(Protocol):
    @property
    def events(self) -> Events: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def memories(self) -> Memories: ...

    @property
    def passages(self) -> Passages: ...

    @property
    def turn_vectors(self) -> TurnVectors: ...

    async def now(self) -> datetime: ...
