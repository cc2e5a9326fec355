"""Embeddings of any provider that LiteLLM supports."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.adapters.embedder_batched import BatchedEmbedder
from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.provider_calls import RemoteModel
from pipeline.domain.vectors import Vector


class LiteLLMEmbedder(BatchedEmbedder):
    """The Embedder port over LiteLLM, for a model such as `cohere/embed-v4.0`."""

    def __init__(self, remote: RemoteModel) -> None:
        super().__init__(remote.name)
        self._client = LiteLLMClient(remote)

    async def close(self) -> None:
        """Nothing to release: LiteLLM keeps its clients until the process ends."""

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        response = await self._client.call("aembedding", input=texts, encoding_format="float")
        return self._read(getattr(response, "data", None))
