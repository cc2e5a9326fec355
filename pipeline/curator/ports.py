"""Stores of the ledger that the curator uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.accounting.costs import Costs
from pipeline.curator.store import CuratorRuns
from pipeline.memories.store import Memories


class CuratorStores(Protocol):
    """The part of the ledger that the curator uses."""

    curator: CuratorRuns
    memories: Memories
    costs: Costs
