"""Token buckets: rate limits of keys and addresses. Each bucket holds one minute's requests.

Buckets are in the memory of each API process: a shared counter would cost a round trip.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from pipeline.domain.errors import Overloaded

FULL_S = 60.0
# Number of buckets from which full ones are dropped. The next time is at twice the number that is
# left, so that a request does not visit all keys in use.
MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """State of a token bucket after a request. `full_in_s`: seconds until it is full again."""

    limit: int
    remaining: int
    full_in_s: int
    retry_after_s: int = 0

    def headers(self) -> dict[str, str]:
        """The rate limit headers of a response."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.full_in_s),
        }

    def require(self) -> None:
        """Check the limit. Errors: Overloaded."""
        if self.retry_after_s:
            raise Overloaded(
                f"This key may send {self.limit} requests a minute.",
                retry_after_s=self.retry_after_s,
            )


@dataclass(slots=True)
class RateLimit:
    """Token buckets by key. Each is stored as the time at which it will be full."""

    per_minute: int = 0
    clock: Callable[[], float] = time.monotonic
    _full_at: dict[Hashable, float] = field(default_factory=dict)
    _drop_from: int = field(default_factory=lambda: MOST_KEYS)

    def take(self, key: Hashable) -> Allowance | None:
        """Count one request, unless the bucket is empty; None if `per_minute` is 0 (no limit)."""
        if not self.per_minute:
            return None
        now, each_s = self.clock(), FULL_S / self.per_minute
        used_s = max(self._full_at.get(key, now) - now, 0.0) + each_s
        # Tolerate the rounding error of a sum of many small steps.
        late_s = used_s - FULL_S
        if late_s > each_s * 1e-6:
            return self._standing(used_s - each_s, retry_after_s=math.ceil(late_s))
        self._fill(key, now, used_s)
        return self._standing(used_s)

    def _fill(self, key: Hashable, now: float, used_s: float) -> None:
        if len(self._full_at) >= self._drop_from:
            self._full_at = {key: at for key, at in self._full_at.items() if at > now}
            self._drop_from = max(MOST_KEYS, 2 * len(self._full_at))
        self._full_at[key] = now + used_s

    def _standing(self, used_s: float, *, retry_after_s: int = 0) -> Allowance:
        remaining = math.floor(self.per_minute * (1 - used_s / FULL_S) + 1e-6)
        return Allowance(self.per_minute, remaining, math.ceil(used_s), retry_after_s)
