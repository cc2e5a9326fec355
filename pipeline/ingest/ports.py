"""Stores of the ledger that ingest uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from pipeline.accounting.costs import Costs
from pipeline.domain.scope import Scope
from pipeline.graph.store import Graph
from pipeline.lanes.group_commit import GroupCommit
from pipeline.lanes.leases import LaneLeases
from pipeline.lanes.store import Lanes
from pipeline.memories.store import Memories
from pipeline.models.kept_answers import KeptAnswers
from pipeline.models.recordings import Recordings
from pipeline.profiles.store import Profiles
from pipeline.transfer.store import Transfers
from pipeline.versions.as_of import MemoriesAsOf


class ScopeWords(Protocol):
    """The memories of a scope by words."""

    async def in_scope(
        self, scope: Scope, query_terms: Sequence[str], *, limit: int
    ) -> tuple[list[UUID], int]:
        """Ids of memories with the most and the rarest of the terms, and the number of memories.

        Some may be of other scopes with the same entity ids. The number is about right.
        """


class IngestStores(Protocol):
    """The part of the ledger that accepts adds and runs stages."""

    costs: Costs
    graph: Graph
    group_commit: GroupCommit
    kept_answers: KeptAnswers
    lanes: Lanes
    leases: LaneLeases
    memories: Memories
    profiles: Profiles
    recordings: Recordings
    transfers: Transfers
    versions: MemoriesAsOf

    @property
    def passages(self) -> ScopeWords:
        """Memories by words."""
