"""Breadth of searches by the size of a collection."""

from __future__ import annotations

import pytest

from pipeline.domain.vectors import WIDEST, wider


@pytest.mark.parametrize(
    ("records", "expected"),
    [(0, 300), (25_000, 300), (100_000, 600), (225_000, 900), (10**9, WIDEST)],
)
def test_a_search_reads_more_hits_of_a_larger_collection(records: int, expected: int) -> None:
    assert wider(300, records, than=25_000) == expected
