"""The stores of the ledger that memories uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.memories.delete_by_filter import Clearing
from pipeline.memories.editing import Editing


class MemoryStores(Protocol):
    @property
    def clearing(self) -> Clearing: ...

    @property
    def editing(self) -> Editing: ...
