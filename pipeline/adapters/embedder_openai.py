"""Embeddings of any server that speaks OpenAI's `POST /embeddings`, straight over HTTP.

Not through LiteLLM: its OpenAI SDK builds a pydantic list of 1,536 Python floats for each vector.
Measured a call, one text, 1,536 dimensions: LiteLLM float 9.3 ms of CPU, LiteLLM base64 3.3 ms.
Nor does an API process that embeds queries have to import LiteLLM (seconds of CPU, 190 MB).

Vectors are asked for as base64, a fifth of the JSON. A server that refuses that parameter is asked
for floats from then on; one that ignores it answers with floats, which are read as they come.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import numpy as np
import orjson

from pipeline.adapters.openai_http import OpenAIHttp, Response
from pipeline.adapters.provider_calls import DEFAULT_RETRY, RetryPolicy, retried
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.domain.vectors import Vector

# Servers behind this API differ: Cohere takes 96 texts a request, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96
CONNECTIONS = 64
_REFUSALS_OF_A_PARAMETER = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class OpenAIEmbedder:
    """The Embedder port for a model named `openai/<model>`; `api_base` ends in `/v1`."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        self._model = model
        self._http = OpenAIHttp(
            model, "/embeddings", api_base=api_base, api_key=api_key, connections=CONNECTIONS
        )
        self._timeout_s = timeout_s
        self._retry = retry
        self._format = "base64"
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
            vectors += await self._batch(texts[start : start + BATCH])
        return vectors

    async def close(self) -> None:
        await self._http.close()

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        async def once(limit_s: float) -> Any:
            return await self._post(texts, limit_s)

        answer = await retried(once, self._retry, timeout_s=self._timeout_s, model=self._model)
        try:
            rows = sorted(answer["data"], key=lambda row: int(row["index"]))
            vectors = [_unit(_floats(row["embedding"])) for row in rows]
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise ModelRejected(f"{self._model}: the answer holds no vectors") from error
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
            raise ModelRejected(f"{self._model}: not one vector of one length for each text")
        return vectors

    async def _post(self, texts: Sequence[str], limit_s: float) -> Any:
        response = await self._send(texts, limit_s)
        refused = response.status in _REFUSALS_OF_A_PARAMETER
        if refused and self._format == "base64" and _about(response.content):
            self._format = "float"
            response = await self._send(texts, limit_s)
        if response.status != HTTPStatus.OK:
            raise self._http.error(response)
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError:
            raise ModelUnavailable(f"{self._model}: the answer is not JSON") from None

    async def _send(self, texts: Sequence[str], limit_s: float) -> Response:
        body = {
            "model": self._http.remote_model,
            "input": [text or " " for text in texts],  # OpenAI refuses an empty string
            "encoding_format": self._format,
        }
        return await self._http.post(body, limit_s=limit_s)


def _about(content: bytes) -> bool:
    """Whether a refusal names the format of the vectors."""
    return b"encoding_format" in content or b"base64" in content


def _floats(embedding: str | Sequence[float]) -> Vector:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, np.float32)


def _unit(vector: Vector) -> Vector:
    """Scaled to length 1. Errors: ValueError for a vector without direction."""
    length = float(np.linalg.norm(vector))
    if not length or not np.isfinite(length):
        raise ValueError("a vector without direction")
    unit: Vector = vector / np.float32(length)
    return unit
