"""What an API key looks like, and the little of it that is kept."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

SHOWN = 7


@dataclass(frozen=True, slots=True)
class Secret:
    """A key in clear: shown once to whoever asked for it."""

    key: str = field(default_factory=lambda: f"ml_{secrets.token_urlsafe(32)}", repr=False)

    @property
    def prefix(self) -> str:
        """Enough to tell one's keys apart."""
        return self.key[:SHOWN]

    @property
    def digest(self) -> bytes:
        # The key is 256 random bits: a slow hash would protect nothing and cost every request.
        return hashlib.sha256(self.key.encode()).digest()
