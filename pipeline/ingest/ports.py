"""The stores of the ledger that ingest uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.accounting.costs import Costs
from pipeline.graph.store import Graph
from pipeline.lanes.group_commit import GroupCommit
from pipeline.lanes.store import Lanes
from pipeline.memories.store import Memories
from pipeline.models.recordings import Recordings


class IngestStores(Protocol):
    @property
    def costs(self) -> Costs: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def inbox(self) -> GroupCommit: ...

    @property
    def lanes(self) -> Lanes: ...

    @property
    def memories(self) -> Memories: ...

    @property
    def recordings(self) -> Recordings: ...
