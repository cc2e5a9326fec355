"""Stores that the service of memories needs."""

from __future__ import annotations

from typing import Protocol

from pipeline.memories.delete_by_filter import DeleteByFilter
from pipeline.memories.editing import MemoryEditing


class MemoryStores(Protocol):
    """The part of the ledger that edits and deletes memories."""

    @property
    def clearing(self) -> DeleteByFilter:
        """Deletions by filter."""

    @property
    def editing(self) -> MemoryEditing:
        """Edits and deletions by id."""
