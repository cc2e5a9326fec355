"""The stores of the ledger that reindex uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.reindex.store import Indexes


class ReindexStores(Protocol):
    @property
    def indexes(self) -> Indexes: ...
