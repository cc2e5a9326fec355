"""A fake embedder for tests: hashed bags of words. Texts that share words are near each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from pipeline.domain.vectors import Vector

DIMENSIONS = 64
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """The Embedder port without a model: deterministic; compares words, not meanings.

    `dimensions`: floats of a vector.
    """

    # Of subclasses with a constructor of their own, too.
    _dimensions = DIMENSIONS

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        return "fake/hash"

    async def dimensions(self) -> int:
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [_vector(text, self._dimensions) for text in texts]

    async def close(self) -> None: ...


def _vector(text: str, dimensions: int) -> Vector:
    counts = np.zeros(dimensions, np.float32)
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        # Signed, so that words with the same position cancel as often as they add up.
        counts[digest[0] % dimensions] += 1.0 if digest[1] % 2 else -1.0
    length = float(np.linalg.norm(counts))
    if not length:  # every word was cancelled by another
        return _vector("", dimensions)
    vector: Vector = counts / np.float32(length)
    return vector
