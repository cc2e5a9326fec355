"""Embeddings of any provider LiteLLM knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.provider_calls import DEFAULT_RETRY, RetryPolicy
from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector

# Cohere takes 96 texts a request, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96


class LiteLLMEmbedder:
    """The Embedder port over LiteLLM: `model` is a name such as `openai/text-embedding-3-small`."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        self._client = LiteLLMClient(
            model, api_base=api_base, api_key=api_key, timeout_s=timeout_s, retry=retry
        )
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        return self._client.model

    async def dimensions(self) -> int:
        if self._dimensions is None:
            [vector] = await self.embed(["How long is a vector?"])
            self._dimensions = len(vector)
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += await self._batch(texts[start : start + BATCH])
        return vectors

    async def close(self) -> None:
        """LiteLLM keeps its clients for the process."""

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        # OpenAI refuses an empty string; a space has a vector.
        response = await self._client.call(
            "aembedding", input=[text or " " for text in texts], encoding_format="float"
        )
        rows = sorted(getattr(response, "data", None) or (), key=lambda row: int(row["index"]))
        vectors = [self._unit(row["embedding"]) for row in rows]
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
            raise ModelRejected(f"{self.name}: not one vector of one length for each text")
        return vectors

    def _unit(self, values: Any) -> Vector:
        vector = np.asarray(values, np.float32)
        length = float(np.linalg.norm(vector))
        if not length or not np.isfinite(length):
            raise ModelRejected(f"{self.name}: a vector without direction")
        unit: Vector = vector / np.float32(length)
        return unit
