"""A cache of API keys: their grants and rate limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from api.auth.rate_limit import Allowance, RateLimit
from pipeline.domain.errors import Overloaded
from pipeline.tenants.api_keys import ApiKeys, Grant
from pipeline.tenants.secret import Secret

# Seconds that a revoked key may still work. Without the cache, each request would cost a query.
KEY_CACHE_S = 5.0
MOST_KEYS = 10_000
# Number of different invalid keys from one address in a minute that get 401; further ones get 429.
WRONG_KEYS_PER_MIN = 60


@dataclass(slots=True)
class KeyRing:
    """Grants by API key, cached for seconds. Invalid keys are cached too, and limited by address.

    The limit never keeps a valid key out, because each key is looked up before it is refused:
    behind a proxy, an attacker and other clients share one address. Look-ups cost little, because
    all that wait share one query.
    """

    keys: ApiKeys
    rate: RateLimit = field(default_factory=RateLimit)
    wrong: RateLimit = field(default_factory=lambda: RateLimit(WRONG_KEYS_PER_MIN))
    _lookups: Lookups = field(init=False)
    _grants: dict[bytes, tuple[float, Grant]] = field(default_factory=dict)
    _invalid: dict[bytes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Share the look-ups of all requests."""
        self._lookups = Lookups(self.keys)

    async def grant(self, key: str, address: str = "") -> Grant | None:
        """The grant of the key; None for an invalid key.

        Errors: Overloaded for an invalid key if the address has sent too many of them.
        """
        return await self.grant_of(Secret(key).digest, address)

    async def grant_of(self, digest: bytes, address: str = "") -> Grant | None:
        """Like `grant`, for the digest of a key."""
        now = time.monotonic()
        valid = self._grants.get(digest)
        if valid and valid[0] > now:
            return valid[1]
        if self._invalid.get(digest, now) > now:
            return None
        grant = await self._lookups.grant(digest)
        if grant is None:
            self._refuse(digest, address)
        else:
            self._remember(digest, grant)
        return grant

    def _refuse(self, digest: bytes, address: str) -> None:
        allowance = self.wrong.take(address)
        if allowance and allowance.retry_after_s:
            raise Overloaded(
                f"This address has sent {allowance.limit} API keys that are not valid.",
                retry_after_s=allowance.retry_after_s,
            )
        if len(self._invalid) >= MOST_KEYS:
            self._invalid.clear()
        self._invalid[digest] = time.monotonic() + KEY_CACHE_S

    def _remember(self, digest: bytes, grant: Grant) -> None:
        if len(self._grants) >= MOST_KEYS:
            self._grants.clear()
        self._grants[digest] = time.monotonic() + min(KEY_CACHE_S, grant.ends_in_s), grant

    def allowance(self, grant: Grant) -> Allowance | None:
        """Count one request of the key or user's token. None if there is no limit."""
        return self.rate.take(grant.user.token_id if grant.user else grant.key_id)

    def forget(self) -> None:
        """Empty the cache: a key was revoked, or its scope was reduced."""
        self._grants.clear()
        self._invalid.clear()


class Lookups:
    """Look-ups of keys, one query at a time. Keys that arrive during a query share the next one."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys
        self._one_at_a_time = asyncio.Lock()
        self._next: tuple[set[bytes], asyncio.Task[Mapping[bytes, Grant]]] | None = None

    async def grant(self, digest: bytes) -> Grant | None:
        """The grant of the key with this digest, or None."""
        if self._next is None:
            digests: set[bytes] = set()
            self._next = digests, asyncio.create_task(self._read(digests))
        digests, reading = self._next
        digests.add(digest)
        # One caller that is cancelled must not end the query of the others.
        return (await asyncio.shield(reading)).get(digest)

    async def _read(self, digests: set[bytes]) -> Mapping[bytes, Grant]:
        async with self._one_at_a_time:
            self._next = None
            return await self._keys.grants(digests)
