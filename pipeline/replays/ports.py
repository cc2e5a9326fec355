"""Stores of the ledger that replays use."""

from __future__ import annotations

from typing import Protocol

from pipeline.replays.store import Shadows
from pipeline.replays.switch import Switch


class ReplayStores(Protocol):
    """The ledger, as far as replays use it."""

    shadows: Shadows
    switch: Switch
