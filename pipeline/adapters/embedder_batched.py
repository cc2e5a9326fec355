"""Base class of the embedders at providers: batches, checks and unit length."""

from __future__ import annotations

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import numpy as np

from pipeline.adapters.llm_json import LimitRefused
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.domain.vectors import Vector

# Maximum number of texts in a request. Providers differ: Cohere takes 96, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96
# A text of this length is not shortened further: no model is refused so few tokens.
SHORTEST_CUT = 500
# The same for a text without a usable vector, which most often has one with fewer words.
SHORTEST_SPOILED = 12
# A text that every embedder has a vector for.
ORDINARY = "How long is a vector?"
# Go's JSON, as in Ollama, cannot write such a vector.
# Source: https://github.com/ollama/ollama/issues/15582
_NOT_A_NUMBER = re.compile(r"unsupported value: (?:NaN|[+-]?Inf)")


class UnusableVectors(ModelRejected):
    """An answer that has not one usable vector of the same length for each text."""


def reports_unusable(status: int | None, text: str) -> bool:
    """True if a server's error says that a vector of its answer has no numbers."""
    return status == HTTPStatus.INTERNAL_SERVER_ERROR and bool(_NOT_A_NUMBER.search(text))


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
            [vector] = await self.embed([ORDINARY])
            self._dimensions = len(vector)
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            # OpenAI refuses an empty string; a space has a vector.
            vectors += await self._embedded([text or " " for text in texts[start : start + BATCH]])
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelRejected(f"{self.name}: vectors of several lengths")
        return vectors

    async def _embedded(self, batch: Sequence[str]) -> list[Vector]:
        """Embed a batch. An unusable answer is asked for once more, then for parts of the batch.

        A server under load can answer with NaN or too few vectors, and well the next time; some
        models have no vector for certain texts. Errors: ModelUnavailable if it has none at all.
        """
        try:
            return await self._checked(batch)
        except LimitRefused as error:
            return await self._in_parts(batch, error)
        except UnusableVectors:
            pass
        try:
            return await self._checked(batch)
        except (LimitRefused, UnusableVectors) as error:
            await self._require_a_vector()
            return await self._in_parts(batch, error)

    async def _require_a_vector(self) -> None:
        """Check that the model has a vector for an ordinary text. Errors: ModelUnavailable."""
        try:
            await self._checked([ORDINARY])
        except UnusableVectors:
            raise ModelUnavailable(f"{self.name}: answers without a usable vector") from None

    async def _in_parts(self, batch: Sequence[str], error: ModelRejected) -> list[Vector]:
        """Embed a refused batch by halves, and one text by its beginning. Errors: as `embed`.

        A text that is too long, or has no vector, gets that of its beginning, as a long text of the
        built-in model does.
        """
        half = len(batch) // 2
        parts = [batch[:half], batch[half:]] if half else [[self._beginning(batch[0], error)]]
        vectors: list[Vector] = []
        for part in parts:
            try:
                vectors += await self._checked(part)
            except (LimitRefused, UnusableVectors) as refusal:
                vectors += await self._in_parts(part, refusal)
        return vectors

    @staticmethod
    def _beginning(text: str, error: ModelRejected) -> str:
        """The first half of a refused text. Errors: `error` if the text is short."""
        if len(text) <= (SHORTEST_CUT if isinstance(error, LimitRefused) else SHORTEST_SPOILED):
            raise error
        return text[: len(text) // 2]

    async def _checked(self, batch: Sequence[str]) -> list[Vector]:
        """The vectors of one request, one for each text. Errors: UnusableVectors."""
        vectors = await self._vectors(batch)
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
            in_order = sorted(rows or (), key=lambda row: int(row.get("index") or 0))
            return [unit(floats(row["embedding"])) for row in in_order]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnusableVectors(f"{self.name}: the answer holds no vectors") from error

    @abstractmethod
    async def close(self) -> None:
        """Release connections."""

    @abstractmethod
    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Unit vectors of one batch, in order.

        Errors: ModelUnavailable, ModelRejected, UnusableVectors, and LimitRefused for a batch or a
        text of this size.
        """


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
