"""The keys this process has seen: what they open, and how often they may ask."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from api.rate import Allowance, RateLimit
from pipeline.ledger.keys import ApiKeys, Grant

# How long a revoked key may still work, in exchange for a look-up a key and not a request.
KEY_CACHE_S = 5.0
MOST_KEYS = 10_000


@dataclass(slots=True)
class KeyRing:
    """Grants by API key, remembered for seconds. Wrong keys are not remembered."""

    keys: ApiKeys
    rate: RateLimit = field(default_factory=RateLimit)
    _known: dict[str, tuple[float, Grant]] = field(default_factory=dict)

    async def grant(self, key: str) -> Grant | None:
        known = self._known.get(key)
        if known and known[0] > time.monotonic():
            return known[1]
        grant = await self.keys.grant(key)
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        if grant:
            lasts_s = min(KEY_CACHE_S, grant.ends_in_s)
            self._known[key] = (time.monotonic() + lasts_s, grant)
        return grant

    def allowance(self, grant: Grant) -> Allowance | None:
        """Counts one request of the key; None where there is no limit."""
        return self.rate.take(grant.key_id)

    def forget(self) -> None:
        """Look every key up again: one of them was revoked, or may do less."""
        self._known.clear()
