"""Vectors: float32 arrays, and their form as bytes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# One embedding: float32, one axis. numpy end to end, because a Python list of 1,536 floats costs
# 50 KB and 100 µs at each step that copies it.
Vector: TypeAlias = NDArray[np.float32]


# Of a text that the model refuses to embed, or that is not embedded yet.
NO_VECTOR: Vector = np.empty(0, np.float32)


def as_vector(values: Sequence[float]) -> Vector:
    return np.asarray(values, np.float32)


FLOAT32 = np.dtype("<f4")


def pack(vector: Vector) -> str:
    """A vector as text: little-endian float32 in base64, a third of its JSON."""
    return base64.b64encode(to_bytes(vector)).decode()


def unpack(packed: str) -> Vector:
    return from_bytes(base64.b64decode(packed))


def to_bytes(vector: Vector) -> bytes:
    """Little-endian float32, four bytes a dimension."""
    return np.asarray(vector, FLOAT32).tobytes()


def from_bytes(packed: bytes) -> Vector:
    """The vector that `to_bytes` packed: read-only, without a copy."""
    return np.frombuffer(packed, FLOAT32)
