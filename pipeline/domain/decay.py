"""Decay: old memories that no search returns rank lower, and often returned ones higher.

    recency    =   0.5 ^ (days since the later of statement and last access / half-life)
    use        =   log2(1 + accesses) / 5, at most 1: full after 31 accesses
    factor     =   0.3 + recency · (0.7 + 0.5 · use)

So a new memory has the factor 1, an old one that is never returned approaches 0.3, and one that is
returned all the time approaches 1.5. An access is a search that returns the memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

LEAST, NEW, MOST = 0.3, 1.0, 1.5
FULL_USE = 31
HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Accesses:
    """Number of accesses of a memory, and the time of the last one."""

    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Decay:
    """The decay of a project's memories."""

    half_life_days: float = HALF_LIFE_DAYS

    @classmethod
    def of(cls, setting: object) -> Decay | None:
        """Parse the project's setting; None if it is off: `true`, or `{"half_life_days": …}`."""
        if isinstance(setting, Mapping):
            return cls(float(setting.get("half_life_days", HALF_LIFE_DAYS)))
        return cls() if setting is True else None

    def factor(self, stated_at: datetime, accesses: Accesses | None, now: datetime) -> float:
        """Factor of a memory's search score, LEAST to MOST."""
        used_at = max(stated_at, accesses.last_at) if accesses else stated_at
        age = max(now - used_at, timedelta()) / timedelta(days=self.half_life_days)
        count = accesses.count if accesses else 0
        use = min(math.log(1 + count, 1 + FULL_USE), 1.0)
        recency = math.pow(0.5, age)
        return LEAST + recency * (NEW - LEAST + (MOST - NEW) * use)
