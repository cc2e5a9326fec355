"""The limit of memories that one event may retire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetireLimit:
    """Maximum number of memories that one event retires: a share of the scope, at least `least`.

    `size`: number of the scope's active memories.
    """

    share: float = 1.0
    size: int = 0
    least: int = 3

    @property
    def most(self) -> int:
        """The number."""
        return max(self.least, int(self.share * self.size))
