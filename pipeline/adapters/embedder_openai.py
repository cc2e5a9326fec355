"""Embeddings of any server with OpenAI's `POST /embeddings`, over plain HTTP.

LiteLLM is not used: its OpenAI SDK builds a pydantic list of 1,536 Python floats for each vector.
CPU of one call with one text and 1,536 dimensions: 9.3 ms with floats, 3.3 ms with base64.
Also, an API process that embeds queries does not import LiteLLM (seconds of CPU, 190 MB).

The request asks for base64, a fifth of the size of JSON. If a server refuses that parameter, all
later requests ask for floats; if it ignores it, the floats of its answer are read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson

from pipeline.adapters.embedder_batched import BatchedEmbedder, UnusableVectors, reports_unusable
from pipeline.adapters.llm_json import LimitRefused, rejection
from pipeline.adapters.openai_http import OpenAIHttp, Response
from pipeline.adapters.provider_calls import RemoteModel, retried
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.domain.vectors import Vector

CONNECTIONS = 64
_REFUSALS_OF_A_PARAMETER = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class OpenAIEmbedder(BatchedEmbedder):
    """The Embedder port for a model named `openai/<model>`; `api_base` ends in `/v1`."""

    def __init__(self, remote: RemoteModel) -> None:
        super().__init__(remote.name)
        self._remote = remote
        self._http = OpenAIHttp(remote, "/embeddings", connections=CONNECTIONS)
        self._format = "base64"

    async def close(self) -> None:
        await self._http.close()

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        answer = await retried(partial(self._post, texts), self._remote)
        return self._read(answer.get("data") if isinstance(answer, dict) else None)

    async def _post(self, texts: Sequence[str], limit_s: float) -> Any:
        """Send one batch; without base64 from now on if the server refuses that format.

        Errors: ModelUnavailable, ModelRejected, UnusableVectors, LimitRefused.
        """
        response = await self._send(texts, limit_s)
        refused = response.status in _REFUSALS_OF_A_PARAMETER
        named = b"encoding_format" in response.content or b"base64" in response.content
        if refused and named and self._format == "base64":
            self._format = "float"
            response = await self._send(texts, limit_s)
        if response.status != HTTPStatus.OK:
            reason = response.content.decode(errors="replace")
            if reports_unusable(response.status, reason):
                raise UnusableVectors(f"{self.name}: a vector without numbers")
            error = self._http.error(response, {"input": texts})
            refusal = rejection(response.status, reason)
            is_limit = isinstance(error, ModelRejected) and issubclass(refusal, LimitRefused)
            raise LimitRefused(str(error)) if is_limit else error
        try:
            return _decoded(response.content)
        except (ValueError, RecursionError):
            raise ModelUnavailable(f"{self._model}: the answer is not JSON") from None

    async def _send(self, texts: Sequence[str], limit_s: float) -> Response:
        body = {
            "model": self._http.remote_model,
            "input": texts,
            "encoding_format": self._format,
        }
        return await self._http.post(body, limit_s=limit_s)


def _decoded(content: bytes) -> Any:
    """The JSON value; Python's NaN and Infinity are read, so that such a vector is an unusable one.

    Errors: ValueError, RecursionError.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return json.loads(content)
