"""Counts of lists that look at a part of the scopes."""

from __future__ import annotations

import pytest

from pipeline.ledger.counting import at_least


@pytest.mark.parametrize(
    ("count", "rows", "offset", "expected"),
    [
        (250, 100, 100, 250),
        (100, 100, 0, 100),
        (0, 100, 0, 101),
        (0, 40, 100, 140),
        (0, 0, 0, 0),
        (7, 0, 100, 7),
    ],
)
def test_a_count_is_never_below_the_rows_of_a_page(
    count: int, rows: int, offset: int, expected: int
) -> None:
    assert at_least(count, rows, limit=100, offset=offset) == expected
