"""Polling for changes in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.02


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll until the condition holds, at most `timeout_s` seconds. Returns its last value."""
    deadline = time.monotonic() + timeout_s
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)  # noqa: TID251  the only place that polls
    return holds
