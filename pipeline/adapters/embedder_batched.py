"""Base class of the embedders at providers: batches, checks and unit length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector

# Maximum number of texts in a request. Providers differ: Cohere takes 96, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96


class BatchedEmbedder(ABC):
    """The Embedder port over `_vectors`, one request for at most BATCH texts."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        return self._model

    async def dimensions(self) -> int:
        if self._dimensions is None:
            [vector] = await self.embed(["How long is a vector?"])
            self._dimensions = len(vector)
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            # OpenAI refuses an empty string; a space has a vector.
            batch = [text or " " for text in texts[start : start + BATCH]]
            part = await self._vectors(batch)
            if len(part) != len(batch) or len({len(vector) for vector in part}) != 1:
                raise ModelRejected(f"{self.name}: not one vector of one length for each text")
            vectors += part
        return vectors

    @abstractmethod
    async def close(self) -> None:
        """Release connections."""

    @abstractmethod
    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Unit vectors of one batch, in order. Errors: ModelUnavailable, ModelRejected."""


def unit(values: Any) -> Vector:
    """The vector scaled to length 1. Errors: ValueError if it is zero or not finite."""
    vector = np.asarray(values, np.float32)
    length = float(np.linalg.norm(vector))
    if not length or not np.isfinite(length):
        raise ValueError("a vector without direction")
    scaled: Vector = vector / np.float32(length)
    return scaled
