"""The format of an API key, and its prefix and digest, which are stored."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

SHOWN = 7


@dataclass(frozen=True, slots=True)
class Secret:
    """An API key in clear: returned once, to the client that creates it."""

    key: str = field(default_factory=lambda: f"ml_{secrets.token_urlsafe(32)}", repr=False)

    @property
    def prefix(self) -> str:
        """The first characters of the key, shown in lists to tell keys apart."""
        return self.key[:SHOWN]

    @property
    def digest(self) -> bytes:
        """SHA-256 of the key, the only form in which it is stored."""
        # The key is 256 random bits: a slow hash would protect nothing and cost every request.
        return hashlib.sha256(self.key.encode()).digest()
