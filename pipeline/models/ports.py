"""The stores of the ledger that models uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.memories.store import Memories
from pipeline.models.recordings import Recordings


class ModelStores(Protocol):
    @property
    def memories(self) -> Memories: ...

    @property
    def recordings(self) -> Recordings: ...
