"""Chat completions of any server with OpenAI's API, over plain HTTP.

A call through LiteLLM costs several ms of CPU, a quarter of a worker's CPU per event. If this
adapter does not understand a refusal or an answer, it repeats the call through LiteLLM, which
handles the differences between servers. If that succeeds, all later calls go through LiteLLM.
Prices are those of LiteLLM's table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
import structlog

from pipeline.adapters.llm_json import ERROR, REFUSAL, Abilities, JsonLLM, Reply, rejection
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.model_table import known_models
from pipeline.adapters.openai_http import OpenAIHttp
from pipeline.adapters.provider_calls import RemoteModel, retried
from pipeline.domain.errors import ModelRejected

log = structlog.get_logger(__name__)


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
        content = await retried(partial(self._post, body), self._remote)
        try:
            answer = orjson.loads(content)
            choice = answer["choices"][0]
            usage = _usage(answer.get("usage") or {})
            return Reply(
                text=_text(choice["message"]),
                finish_reason=_finish_reason(choice),
                prompt_tokens=usage["prompt_tokens"],
                completion_tokens=usage["completion_tokens"],
                cost_usd=await self._price(answer.get("model"), usage),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise NotUnderstoodError from None

    async def _price(self, model: object, usage: Mapping[str, Any]) -> float | None:
        """Price of an answer of this model in dollars; None without a known price or usage.

        A server may name its model otherwise than the table; then the requested model counts.
        """
        models = await known_models()
        known = models.get(str(model)) or models.get(self._http.remote_model)
        return known.price(usage) if known and usage["prompt_tokens"] else None

    async def _post(self, body: Mapping[str, Any], limit_s: float) -> bytes:
        """One attempt; the body of a response with status 200. Errors: as `_chat`."""
        response = await self._http.post(body, limit_s=limit_s)
        if response.status == HTTPStatus.OK:
            return response.content
        if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
            raise NotUnderstoodError  # LiteLLM follows redirects
        error = self._http.error(response, body)
        if not isinstance(error, ModelRejected):
            raise error
        refusal = rejection(response.status, response.content.decode(errors="replace"))
        if refusal is ModelRejected:
            raise NotUnderstoodError
        raise refusal(str(error))


def _text(message: Mapping[str, Any]) -> str:
    """The arguments of the function that the model has called, or else its text.

    A text in parts, as of Mistral's reasoning models, is joined without its thoughts.
    """
    calls, content = message.get("tool_calls"), message.get("content")
    if calls:
        content = calls[0]["function"]["arguments"]
    elif isinstance(content, list):
        content = "".join(part["text"] for part in content if part["type"] == "text")
    if not isinstance(content, str | None):
        raise NotUnderstoodError
    return content or ""


def _finish_reason(choice: Mapping[str, Any]) -> str | None:
    """The finish reason; ERROR or REFUSAL for an error or a refusal in the choice."""
    reason: str | None = choice.get("finish_reason")
    refused = choice["message"].get("refusal")
    return ERROR if choice.get("error") else REFUSAL if refused else reason


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of an answer. Tokens that only the total has are those of the model's reasoning.

    xAI and Gemini leave these out of the completion tokens.
    Source: https://docs.x.ai/docs/guides/reasoning
    """
    prompt, answered, total = (
        int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    completion = max(answered, total - prompt)
    return {**usage, "prompt_tokens": prompt, "completion_tokens": completion}
