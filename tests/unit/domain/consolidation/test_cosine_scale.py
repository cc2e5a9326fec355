"""The floor of cosines follows the embedder's scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.domain.consolidation.cosine_scale import (
    FAR,
    FAR_UNKNOWN,
    LEAST_VECTORS,
    MOST_VECTORS,
    far_below,
)


def packed(number: int, *, shared: float) -> Sequence[bytes]:
    """Random unit vectors whose pairs have a mean cosine of `shared`."""
    noise = np.random.default_rng(7).normal(size=(number, 256))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    vectors = np.hstack([np.full((number, 1), shared**0.5), (1 - shared) ** 0.5 * noise])
    return [row.tobytes() for row in vectors.astype(np.float32)]


@pytest.mark.parametrize("shared", [0.0, 0.1, 0.2])
def test_a_floor_lies_below_most_unrelated_pairs(shared: float) -> None:
    floor = far_below(packed(40, shared=shared))
    assert shared - 0.15 < floor < shared


def test_a_floor_is_never_above_the_highest() -> None:
    assert far_below(packed(40, shared=0.7)) == FAR


def test_few_vectors_show_no_scale() -> None:
    assert far_below(packed(LEAST_VECTORS - 1, shared=0.7)) == FAR_UNKNOWN
    assert far_below([]) == FAR_UNKNOWN


def test_equal_vectors_have_a_floor() -> None:
    assert far_below([*packed(1, shared=0.5)] * LEAST_VECTORS) == FAR


def test_no_more_than_the_sample_is_read() -> None:
    sample = packed(MOST_VECTORS, shared=0.1)
    assert far_below([*sample, *packed(40, shared=0.9)]) == far_below(sample)
