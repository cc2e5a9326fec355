"""Long texts that make careless code slow, and a check that a function takes linear time."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

LONG = 32_000
# Repeated up to the length of a text; "{}" is a number that grows, so that no two parts are equal.
UNITS = (
    " ", "\n", "a\u0301", "a", "Nama{}a. ", ".,", "?", "a-", "a'", "a@a", "1,", "2024-05-07 ", "A1",
    "<recalled>", "一二", "王小明", "\ufdfa", "I like tea{}. ", "not a ", "May in 2 days ",
)  # fmt: skip
# A function may take this many times as long for a text of four times the length; a quadratic one
# takes sixteen times as long.
MOST_GROWTH = 12.0
# Times of a plain scan of the text: below the first, growth is within the noise of a measurement;
# above the second, a function is too slow for an event loop at any growth.
NEGLIGIBLE, TOO_SLOW = 10.0, 1_000.0
SCAN = re.compile(r"\w+|\W")


@cache
def filled(unit: str, size: int, tail: str = "") -> str:
    """The unit, repeated to `size` characters, and the tail."""
    parts, length, number = [], 0, 0
    while length < size:
        parts.append(unit.replace("{}", str(number)))
        length, number = length + len(parts[-1]), number + 1
    return "".join(parts)[: size - len(tail)] + tail


def faults(call: Callable[[str], object], units: Sequence[str] = UNITS) -> list[str]:
    """The texts for which `call` is too slow or grows faster than its text, with the figures."""
    scan = min(_seconds(_scan, filled("ab ", LONG)) for _ in range(5))
    return [fault for unit in units if (fault := _fault(call, unit, scan))]


def _scan(text: str) -> list[str]:
    return SCAN.findall(text.casefold())


def _fault(call: Callable[[str], object], unit: str, scan: float) -> str | None:
    # The last letter is another one, so that a pattern that needs the end of the text fails.
    long, short = filled(unit, LONG, "x"), filled(unit, LONG // 4, "x")
    short_seconds = _seconds(call, short)
    if 16 * short_seconds < NEGLIGIBLE * scan:
        return None
    long_seconds = _seconds(call, long)
    if long_seconds < NEGLIGIBLE * scan:
        return None
    growth = cost = sys.float_info.max
    for attempt in range(3):  # other processes may slow one measurement
        if attempt:
            short_seconds, long_seconds = _seconds(call, short), _seconds(call, long)
        growth = min(growth, long_seconds / max(short_seconds, scan / 4))
        cost = min(cost, long_seconds / scan)
        if growth <= MOST_GROWTH and cost <= TOO_SLOW:
            return None
    return f"{unit!r}: {growth:.1f} times for 4 times the text, {cost:.0f} scans"


def _seconds(call: Callable[[str], object], text: str) -> float:
    """CPU time of one call, without answers of earlier calls in the caches of the package."""
    for answers in _caches():
        answers.cache_clear()
    begun = time.process_time()
    call(text)
    return time.process_time() - begun


@cache
def _caches() -> list[Any]:
    modules = [module for name, module in sys.modules.items() if name.startswith("pipeline.")]
    values = [value for module in modules for value in vars(module).values()]
    return [value for value in values if isinstance(value, functools._lru_cache_wrapper)]
