"""The stores of the ledger that replays uses."""

from __future__ import annotations

from typing import Protocol

from pipeline.replays.store import Shadows
from pipeline.replays.switch import Switch


class ReplayStores(Protocol):
    @property
    def shadows(self) -> Shadows: ...

    @property
    def switch(self) -> Switch: ...
