"""A cache of API keys: their grants and rate limits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from api.auth.rate_limit import Allowance, RateLimit
from pipeline.domain.errors import Overloaded
from pipeline.tenants.api_keys import ApiKeys, Grant

# Seconds that a revoked key may still work. Without the cache, each request would cost a query.
KEY_CACHE_S = 5.0
MOST_KEYS = 10_000
# Maximum number of different invalid keys from one address in a minute; each costs a query.
WRONG_KEYS_PER_MIN = 60


@dataclass(slots=True)
class KeyRing:
    """Grants by API key, cached for seconds. Invalid keys are cached too, and limited by address.

    `_valid`: keys that were valid before. They are looked up even if their address has sent many
    invalid keys: behind a proxy, an attacker and other clients share one address.
    """

    keys: ApiKeys
    rate: RateLimit = field(default_factory=RateLimit)
    wrong: RateLimit = field(default_factory=lambda: RateLimit(WRONG_KEYS_PER_MIN))
    _known: dict[str, tuple[float, Grant | None]] = field(default_factory=dict)
    _valid: set[str] = field(default_factory=set)

    async def grant(self, key: str, address: str = "") -> Grant | None:
        """The grant of the key; None for an invalid key.

        Errors: Overloaded if the address has sent too many invalid keys.
        """
        known = self._known.get(key)
        if known and known[0] > time.monotonic():
            return known[1]
        if key not in self._valid:
            self._require_attempt(address)
        grant = await self.keys.grant(key)
        self._remember(key, grant)
        if grant is None:
            self.wrong.take(address)
        return grant

    def _require_attempt(self, address: str) -> None:
        allowance = self.wrong.peek(address)
        if allowance and allowance.retry_after_s:
            raise Overloaded(
                f"This address has sent {allowance.limit} API keys that are not valid.",
                retry_after_s=allowance.retry_after_s,
            )

    def _remember(self, key: str, grant: Grant | None) -> None:
        if len(self._known) >= MOST_KEYS:
            self._known.clear()
        if len(self._valid) >= MOST_KEYS:
            self._valid.clear()
        lasts_s = min(KEY_CACHE_S, grant.ends_in_s) if grant else KEY_CACHE_S
        self._known[key] = (time.monotonic() + lasts_s, grant)
        if grant:
            self._valid.add(key)

    def allowance(self, grant: Grant) -> Allowance | None:
        """Count one request of the key. None if there is no limit."""
        return self.rate.take(grant.key_id)

    def forget(self) -> None:
        """Empty the cache: a key was revoked, or its scope was reduced."""
        self._known.clear()
