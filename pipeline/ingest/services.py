"""Dependencies of the stages: stores, models, limits, and the leases of their lanes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pipeline.domain.lanes import Activation
from pipeline.domain.summaries import SummaryAfter
from pipeline.ingest.ports import IngestStores
from pipeline.models.override import ONLY_CONFIGURED, ModelFactory
from pipeline.ports import Embedder, MemoryModel
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector


class Leases(Protocol):
    """Renews the leases of the lanes this process works on.

    Work inside `keep_renewed` is cancelled when the process has to stop. Inside `alone`, one
    suspect of this process runs at a time; the more `crashes` a suspect has caused, the later its
    turn.
    """

    def keep_renewed(self, activation: Activation) -> AbstractContextManager[None]:
        """Renew the lease of this lane until the context ends."""

    def blocked(self) -> bool:
        """True if the current stage blocked the event loop, so that leases were not renewed."""

    def alone(self, crashes: int) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of a suspect with this number of crashes."""


@dataclass(frozen=True, slots=True)
class Services:
    """Stores, models and limits of the stages; bootstrap builds them once per process."""

    ledger: IngestStores
    model: MemoryModel
    embedder: Embedder
    index: VectorIndex
    projector: Projector
    turn_projector: Projector | None
    graph: bool
    neighbours: int
    retire_share: float
    max_attempts: int
    outage_budget_s: float
    # None: no summaries are made.
    summary_after: SummaryAfter | None = None
    model_factory: ModelFactory = ONLY_CONFIGURED
