"""Signs of rotated vectors: stable, and as far apart as the angle of the vectors."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from asyncpg import BitString

from pipeline.adapters.vectors_pgvector.rotated import bits, signs
from pipeline.domain.vectors import Vector


def apart(first: BitString, second: BitString) -> int:
    """Number of bits that differ."""
    return sum(map(str.__ne__, first.as_string(), second.as_string()))


def at_angle(degrees: float, dimensions: int) -> tuple[Vector, Vector]:
    """Two sparse vectors with this angle."""
    first, second = np.zeros((2, dimensions), np.float32)
    first[0] = 1.0
    second[:2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return first, second


@pytest.mark.parametrize("dimensions", [2, 384, 1_536, 3_072])
@pytest.mark.parametrize("degrees", [0, 30, 60, 90])
def test_the_share_of_bits_that_differ_is_the_angle(dimensions: int, degrees: int) -> None:
    width = bits(dimensions)
    share = apart(*signs(at_angle(degrees, dimensions))) / width
    # Four standard deviations, and the sums of two rounds of random factors.
    assert share == pytest.approx(degrees / 180, abs=0.05)


def test_the_length_of_a_vector_does_not_matter() -> None:
    vector = np.random.default_rng(1).normal(size=384).astype(np.float32)
    first, second = signs([vector, 0.01 * vector])
    assert first == second


def test_stored_signs_stay_comparable() -> None:
    """Another rotation would make the signs in tables worthless."""
    vectors = np.eye(3, 1_536, dtype=np.float32)
    digest = hashlib.sha256(b"".join(row.bytes for row in signs(list(vectors)))).hexdigest()
    assert digest == "d381e31dc85b72357aaef0dd40b688af312928daf4de77dff602a7c90c2d9fa1"


@pytest.mark.parametrize(
    ("dimensions", "width"), [(3, 2_048), (2_048, 2_048), (2_049, 4_096), (16_000, 16_384)]
)
def test_the_number_of_bits_is_a_power_of_two(dimensions: int, width: int) -> None:
    assert bits(dimensions) == width


def test_no_vectors_have_no_signs() -> None:
    assert signs([]) == []
