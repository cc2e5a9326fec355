"""Signs of rotated vectors: a bit string for each, whose Hamming distance follows the angle.

The rotation spreads each number over all bits, so the signs tell as much of a sparse vector, or of
one whose numbers are all positive, as of any other. It never changes: stored signs are
compared with those of later queries. Source of the method: Charikar 2002 (signs of random
projections); Ailon and Chazelle 2009 (randomized Hadamard transform).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from asyncpg import BitString

from pipeline.domain.vectors import Vector

Rows = npt.NDArray[np.float32]

# With 2,048 bits the estimated angle is off by 2 degrees (one standard deviation).
FEWEST_BITS = 2_048
ROUNDS = 2


def bits(dimensions: int) -> int:
    """Number of signs of a vector: a power of two, as the transform needs."""
    return max(FEWEST_BITS, 1 << (dimensions - 1).bit_length())


def signs(vectors: Sequence[Vector]) -> list[BitString]:
    """The signs of vectors of the same length."""
    if not vectors:
        return []
    width = bits(len(vectors[0]))
    rows = np.zeros((len(vectors), width), np.float32)
    rows[:, : len(vectors[0])] = vectors
    for flips in _flips(width):
        rows = _hadamard(rows * flips)
    return [BitString.frombytes(row.tobytes(), width) for row in np.packbits(rows > 0, axis=1)]


@cache
def _flips(width: int) -> Rows:
    """Random factors 1 and -1 for each round. From a hash: generators change with their library."""
    packed = hashlib.shake_256(b"memlane rotation").digest(ROUNDS * width // 8)
    random = np.unpackbits(np.frombuffer(packed, np.uint8)).reshape(ROUNDS, width)
    return np.where(random, np.float32(1), np.float32(-1))


def _hadamard(rows: Rows) -> Rows:
    """The Walsh-Hadamard transform of each row, not scaled."""
    count, width = rows.shape
    step = 1
    while step < width:
        pairs = rows.reshape(count, -1, 2, step)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        rows = np.stack((first + second, first - second), axis=2)
        step *= 2
    return rows.reshape(count, width)
