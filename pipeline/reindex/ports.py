"""Stores of the ledger that reindexing uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.reindex.store import Indexes


class ReindexStores(Protocol):
    """The part of the ledger that builds indexes."""

    @property
    def indexes(self) -> Indexes:
        """States of the vector indexes."""
