"""The stores of the ledger that this feature uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.memories.store import Memories
from pipeline.models.recordings import Recordings


class ModelStores(Protocol):
    """Stores that a recorded model reads."""

    memories: Memories
    recordings: Recordings
