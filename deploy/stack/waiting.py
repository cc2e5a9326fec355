"""Waiting for what another process does, which no event of ours announces."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.02


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Look until the condition holds, at most so long; whether it does."""
    deadline = time.monotonic() + timeout_s
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)  # noqa: TID251  the one place that polls
    return holds
