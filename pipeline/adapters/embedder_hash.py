"""A fake embedder for tests: hashed bags of words. Texts that share words are near each other."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from pipeline.ports import Vector

DIMENSIONS = 64
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Deterministic in every process, without a model; knows words, not meanings."""

    @property
    def name(self) -> str:
        return "fake/hash"

    async def dimensions(self) -> int:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [_vector(text) for text in texts]


def _vector(text: str) -> Vector:
    counts = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        # Signed, so that words which share a place cancel as often as they add up.
        counts[digest[0] % DIMENSIONS] += 1.0 if digest[1] % 2 else -1.0
    length = math.hypot(*counts)
    if not length:  # every word was cancelled by another
        return _vector("")
    return [count / length for count in counts]
