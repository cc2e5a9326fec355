"""Cache of compiled statements: bounded by bytes, the least recently used ones leave first."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import ClauseElement, literal, select

from pipeline.ledger.byte_cache import ByteCache
from pipeline.ledger.statements import QUICK, Compiled, CompiledShapes


def test_the_least_recently_used_values_leave_beyond_the_limit() -> None:
    cache = ByteCache(1_000, len)
    for n in range(100):
        cache[n] = b"x" * 20
        assert cache.get(0) is not None
        assert cache.used_bytes <= 1_000
    assert len(cache) == 50
    assert set(cache) == {0, *range(51, 100)}


def test_a_value_that_would_displace_many_others_is_not_kept() -> None:
    cache = ByteCache(1_000, len)
    cache["a"] = b"x"
    cache["b"] = b"x" * 500
    cache["a"] = b"x" * 500
    assert (dict(cache), cache.used_bytes) == ({}, 0)


def test_a_value_that_is_replaced_counts_once() -> None:
    cache = ByteCache(1_000, len)
    for _ in range(3):
        cache["a"] = b"x" * 10
    assert cache.used_bytes == 10
    del cache["a"]
    assert cache.used_bytes == 0
    with pytest.raises(KeyError):
        cache["a"]


async def test_a_shape_is_compiled_once_and_a_large_one_in_a_thread() -> None:
    threads: list[Any] = []

    def build(shape: str) -> ClauseElement:
        threads.append(threading.current_thread())
        return select(literal(shape))

    shapes = CompiledShapes()
    small = await shapes.of(build, "small", conditions=QUICK)
    assert await shapes.of(build, "small", conditions=QUICK) is small
    large = await shapes.of(build, "large", conditions=QUICK + 1)
    assert await shapes.of(build, "large", conditions=QUICK + 1) is large
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


def test_the_size_of_a_statement_grows_with_its_text_and_names() -> None:
    sizes = [
        Compiled.of(select(*(literal(n).label(f"n{n}") for n in range(count)))).size_bytes
        for count in (1, 10, 100)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] > 10_000
