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
from collections.abc import Mapping, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any

import aiohttp
import numpy as np
import orjson

from pipeline.adapters.provider_calls import (
    DEFAULT_RETRY,
    PASSING_STATUSES,
    RetryPolicy,
    Throttled,
    retried,
    retry_after_s,
)
from pipeline.errors import ModelRejected, ModelUnavailable
from pipeline.ports import Vector

PROVIDER = "openai/"
OPENAI_BASE = "https://api.openai.com/v1"
# Servers behind this API differ: Cohere takes 96 texts a request, Gemini 100, OpenAI 2,048.
# Source: https://docs.cohere.com/reference/embed, https://ai.google.dev/api/embeddings
BATCH = 96
CONNECTIONS = 64
# Idle connections are closed before a load balancer does it (60 s is the shortest common limit).
KEEPALIVE_S = 30.0
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
        self._url = (api_base or OPENAI_BASE).rstrip("/") + "/embeddings"
        self._key = api_key
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
        if "_http" in vars(self):
            await self._http.close()

    @cached_property
    def _http(self) -> aiohttp.ClientSession:
        """Made at the first request: a session belongs to the loop that runs then."""
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEPALIVE_S)
        return aiohttp.ClientSession(connector=connector, headers=headers)

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
        status, headers, content = await self._send(texts, limit_s)
        if status in _REFUSALS_OF_A_PARAMETER and self._format == "base64" and _about(content):
            self._format = "float"
            status, headers, content = await self._send(texts, limit_s)
        if status != HTTPStatus.OK:
            raise _refusal(self._model, status, headers)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise ModelUnavailable(f"{self._model}: the answer is not JSON") from None

    async def _send(
        self, texts: Sequence[str], limit_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        body = {
            "model": self._model.removeprefix(PROVIDER),
            "input": [text or " " for text in texts],  # OpenAI refuses an empty string
            "encoding_format": self._format,
        }
        timeout = aiohttp.ClientTimeout(total=limit_s)
        try:
            async with self._http.post(
                self._url, data=orjson.dumps(body), timeout=timeout, allow_redirects=False
            ) as response:
                content = await response.read()
        except TimeoutError:
            raise ModelUnavailable(f"{self._model}: no answer within {limit_s:g} s") from None
        except aiohttp.ClientError as error:
            raise ModelUnavailable(f"{self._model}: {type(error).__name__}") from None
        lower = {name.lower(): value for name, value in response.headers.items()}
        return response.status, lower, content


def _about(content: bytes) -> bool:
    """Whether a refusal names the format of the vectors."""
    return b"encoding_format" in content or b"base64" in content


def _refusal(
    model: str, status: int, headers: Mapping[str, str]
) -> ModelUnavailable | ModelRejected:
    """The error by what helps. It names the status only: a body may repeat the texts."""
    text = f"{model}: HTTP {status}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(text, retry_after_s=retry_after_s(headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in PASSING_STATUSES:
        return ModelUnavailable(text, retry_after_s=retry_after_s(headers))
    return ModelRejected(text)


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
