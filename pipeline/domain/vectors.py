"""Vectors: float32 arrays and their binary form."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from math import sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# One embedding: float32, one axis. An array and not a list: each copy of a Python list of 1,536
# floats costs 50 KB and 100 µs.
Vector: TypeAlias = NDArray[np.float32]


# Vector of a text that is not embedded yet, or that the model refuses to embed.
NO_VECTOR: Vector = np.empty(0, np.float32)


def as_vector(values: Sequence[float]) -> Vector:
    """Convert a sequence of numbers to float32."""
    return np.asarray(values, np.float32)


FLOAT32 = np.dtype("<f4")
# Beyond it a search costs more than it finds; also pgvector's maximum of hnsw.ef_search.
WIDEST = 1_000


def wider(reach: int, records: int, *, than: int) -> int:
    """Number of hits to read from a collection of `records`, if `reach` are enough for `than`.

    With the root of the size: 2.2 times as many for 5 times the records keep the same recall
    (measured from 20,000 to 100,000 records of 1,536 dimensions with Chroma and pgvector).
    """
    return min(round(reach * sqrt(max(1.0, records / than))), WIDEST)


def pack(vector: Vector) -> str:
    """Encode a vector as base64 of little-endian float32: a third of the size of JSON."""
    return base64.b64encode(to_bytes(vector)).decode()


def unpack(packed: str) -> Vector:
    """Decode a vector from `pack`."""
    return from_bytes(base64.b64decode(packed))


def to_bytes(vector: Vector) -> bytes:
    """Encode a vector as little-endian float32, four bytes per dimension."""
    return np.asarray(vector, FLOAT32).tobytes()


def from_bytes(packed: bytes) -> Vector:
    """Decode a vector from `to_bytes`, read-only and without a copy."""
    return np.frombuffer(packed, FLOAT32)
