"""Retry: the pause of a stage before its next try."""

from __future__ import annotations

import random
from collections.abc import Callable

# Pauses double from the first to the longest, ±20 %, so that lanes do not all retry at once.
FIRST_WAIT_S, LONGEST_WAIT_S, JITTER = 5.0, 900.0, 0.2


def wait_s(
    waits: int,
    retry_after_s: float | None,
    *,
    jitter: Callable[[float, float], float] = random.uniform,
) -> float:
    """Seconds until the next try, with jitter.

    The provider's `retry_after_s` if it sent one, else exponential backoff by the number of waits.
    """
    base: float = min(FIRST_WAIT_S * 2 ** min(waits, 16), LONGEST_WAIT_S)
    if retry_after_s is not None:
        return retry_after_s * jitter(1, 1 + JITTER)
    return base * jitter(1 - JITTER, 1 + JITTER)
