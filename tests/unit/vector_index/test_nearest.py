"""Nearest memories of several vectors in one call."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from pipeline.domain.vectors import as_vector
from pipeline.vector_index.index import compared, nearest_of

A, B, C, D = (UUID(int=n) for n in range(4))


ACROSS = [as_vector((1.0, 0.0)), as_vector((0.0, 1.0))]


def packed(*vectors: tuple[float, ...]) -> list[tuple[UUID, bytes]]:
    return [
        (UUID(int=n), np.asarray(vector, np.float32).tobytes()) for n, vector in enumerate(vectors)
    ]


def test_each_vector_is_compared_with_all() -> None:
    stored = packed((1.0, 0.0), (0.6, 0.8))
    first, second = compared(stored, ACROSS)
    assert first == pytest.approx({A: 1.0, B: 0.6})
    assert second == pytest.approx({A: 0.0, B: 0.8})


def test_where_nothing_is_stored_nothing_is_near() -> None:
    assert compared([], ACROSS) == [{}, {}]
    assert compared(packed((1.0, 0.0)), []) == []


def test_what_has_many_near_it_takes_no_place_of_another() -> None:
    crowd = {A: 0.99, B: 0.98, C: 0.97, D: 0.1}
    assert nearest_of([crowd, {A: 0.0, B: 0.0, C: 0.0, D: 0.9}], each=1) == {A: 0.99, D: 0.9}


def test_what_is_near_to_several_counts_as_near_as_the_nearest() -> None:
    assert nearest_of([{A: 0.2, B: 0.1}, {A: 0.7, B: 0.6}], each=2) == {A: 0.7, B: 0.6}
