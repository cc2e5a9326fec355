"""Base class of the embedders at providers: batches, checks and unit length."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.adapters.llm_json import LimitRefused
from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector

# Maximum number of texts in a request. Providers differ: Cohere takes 96, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96
# A text of this length is not shortened further: no model is refused so few tokens.
SHORTEST_CUT = 500


class UnusableVectors(ModelRejected):
    """An answer that has not one usable vector of the same length for each text."""


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
            vectors += await self._fitting([text or " " for text in texts[start : start + BATCH]])
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelRejected(f"{self.name}: vectors of several lengths")
        return vectors

    async def _fitting(self, batch: Sequence[str]) -> list[Vector]:
        """Embed a batch; halve one that is too large, and a text that is too long.

        A long text has the vector of its beginning, as of the built-in model. Errors: as `embed`.
        """
        try:
            return await self._usable(batch)
        except LimitRefused:
            half = len(batch) // 2
            if half:
                return [*await self._fitting(batch[:half]), *await self._fitting(batch[half:])]
            [text] = batch
            if len(text) <= SHORTEST_CUT:
                raise
            return await self._fitting([text[: len(text) // 2]])

    async def _usable(self, batch: Sequence[str]) -> list[Vector]:
        """The vectors of one batch. An unusable answer is asked for once more.

        A server under load can answer with NaN or too few vectors, and well the next time.
        """
        try:
            return self._checked(batch, await self._vectors(batch))
        except UnusableVectors:
            return self._checked(batch, await self._vectors(batch))

    def _checked(self, batch: Sequence[str], vectors: list[Vector]) -> list[Vector]:
        if len(vectors) != len(batch):
            raise UnusableVectors(f"{self.name}: not one vector for each text")
        if len({len(vector) for vector in vectors}) > 1:
            raise UnusableVectors(f"{self.name}: vectors of several lengths")
        return vectors

    def _read(self, rows: Any) -> list[Vector]:
        """Unit vectors of the rows of an answer, in order of their index.

        Gemini leaves out the index 0, others all of them. Errors: UnusableVectors.
        """
        try:
            return [unit(floats(row["embedding"])) for row in sorted(rows or (), key=_index)]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnusableVectors(f"{self.name}: the answer holds no vectors") from error

    @abstractmethod
    async def close(self) -> None:
        """Release connections."""

    @abstractmethod
    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Unit vectors of one batch, in order.

        Errors: ModelUnavailable, ModelRejected, LimitRefused for a batch or a text of this size.
        """


def _index(row: Any) -> int:
    return int(row.get("index") or 0)


def floats(embedding: str | Sequence[float]) -> Vector:
    """The vector from base64 (little-endian 32-bit floats) or from a list of numbers."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, np.float32)


def unit(values: Any) -> Vector:
    """The vector scaled to length 1. Errors: ValueError if it is zero or not finite."""
    vector = np.asarray(values, np.float32)
    length = float(np.linalg.norm(vector))
    if not length or not np.isfinite(length):
        raise ValueError("a vector without direction")
    scaled: Vector = vector / np.float32(length)
    return scaled
