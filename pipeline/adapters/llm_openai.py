"""Chat completions of any server with OpenAI's API, over plain HTTP.

A call through LiteLLM costs several ms of CPU, a quarter of a worker's CPU per event. If this
adapter does not understand a refusal or an answer, it repeats the call through LiteLLM, which
handles the differences between servers. If that succeeds, all later calls go through LiteLLM.
Prices are those of LiteLLM's table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import orjson
import structlog

from pipeline.adapters.llm_json import Abilities, JsonLLM, Reply, rejection
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.model_table import known_models
from pipeline.adapters.openai_http import OpenAIHttp
from pipeline.adapters.provider_calls import RemoteModel, retried
from pipeline.domain.errors import ModelRejected

log = structlog.get_logger(__name__)

# Start of the reasoning part of an answer, which LiteLLM removes.
THOUGHTS = "<think"


class NotUnderstoodError(Exception):
    """A response that is neither a chat completion nor a known error."""


class OpenAIChat(JsonLLM):
    """The LLM port for a model named `openai/<model>`; `api_base` ends in `/v1`."""

    def __init__(self, remote: RemoteModel) -> None:
        super().__init__(remote.name)
        self._remote = remote
        # Without a key, send the same placeholder as LiteLLM.
        with_key = replace(remote, api_key=remote.api_key or "none")
        self._http = OpenAIHttp(with_key, "/chat/completions", connections=0)
        self._litellm = LiteLLM(remote)
        self._through_litellm = False

    async def abilities(self) -> Abilities:
        """The abilities of the model. One that is unknown is tried with all formats: most servers
        behind an OpenAI-compatible base URL (vLLM, llama.cpp, Ollama) support a schema.
        """
        models = await known_models()
        known = models.get(self.name) or models.get(self._http.remote_model)
        if known is None:
            return Abilities()
        return Abilities(known.max_output_tokens, known.schema, known.functions)

    async def close(self) -> None:
        await self._http.close()

    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """One chat completion over HTTP; through LiteLLM if the answer is not understood.

        Errors: as `JsonLLM.chat`.
        """
        if self._through_litellm:
            return await self._litellm.chat(messages, **options)
        try:
            return await self._chat({"messages": messages, **options})
        except NotUnderstoodError:
            reply = await self._litellm.chat(messages, **options)
        self._through_litellm = True
        log.info("model_called_through_litellm", model=self.name)
        return reply

    async def _chat(self, options: Mapping[str, Any]) -> Reply:
        """One chat completion over HTTP, with retries.

        Errors: as `chat`; NotUnderstoodError for an unknown refusal or answer.
        """
        body = {"model": self._http.remote_model, **options}

        async def once(limit_s: float) -> bytes:
            return await self._post(body, limit_s)

        content = await retried(
            once, self._remote.retry, timeout_s=self._remote.timeout_s, model=self.name
        )
        try:
            answer = orjson.loads(content)
            choice, usage = answer["choices"][0], answer.get("usage") or {}
            message = choice["message"]
            calls = message.get("tool_calls")
            text = calls[0]["function"]["arguments"] if calls else message.get("content") or ""
            if not isinstance(text, str) or text.lstrip().startswith(THOUGHTS):
                raise NotUnderstoodError
            return Reply(
                text=text,
                finish_reason=choice.get("finish_reason"),
                prompt_tokens=int(usage.get("prompt_tokens") or 0),
                completion_tokens=int(usage.get("completion_tokens") or 0),
                cost_usd=await self._price(answer),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise NotUnderstoodError from None

    async def _price(self, answer: Mapping[str, Any]) -> float | None:
        """Price of the answer in dollars; None for a model without a known price."""
        known = (await known_models()).get(answer.get("model") or self._http.remote_model)
        return known.price(answer["usage"]) if known and answer.get("usage") else None

    async def _post(self, body: Mapping[str, Any], limit_s: float) -> bytes:
        """One attempt; the body of a response with status 200. Errors: as `_chat`."""
        response = await self._http.post(body, limit_s=limit_s)
        if response.status == HTTPStatus.OK:
            return response.content
        error = self._http.error(response, body)
        if not isinstance(error, ModelRejected):
            raise error
        refusal = rejection(response.status, response.content.decode(errors="replace"))
        if refusal is ModelRejected:
            raise NotUnderstoodError
        raise refusal(str(error))
