"""Stores that the service of versions needs."""

from __future__ import annotations

from typing import Protocol

from pipeline.versions.restore import Restore


class VersionStores(Protocol):
    """The part of the ledger that restores versions."""

    @property
    def restores(self) -> Restore:
        """Restores of memories."""
