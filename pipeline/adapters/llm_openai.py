"""Chat completions of any server that speaks OpenAI's API, straight over HTTP.

Not through LiteLLM, whose call costs several ms of CPU: a quarter of what a worker spends on an
event. What this adapter does not understand (a refusal of another parameter, an answer of another
form) goes through LiteLLM, which knows the peculiarities of servers and models; where LiteLLM gets
an answer, all later calls take that way. Prices are LiteLLM's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
import structlog

from pipeline.adapters.llm_json import JsonLLM, Reply, rejection
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.openai_http import OpenAIHttp
from pipeline.adapters.provider_calls import DEFAULT_RETRY, RetryPolicy, retried
from pipeline.domain.errors import ModelRejected

log = structlog.get_logger(__name__)

# A reasoning model's thoughts in its answer, which LiteLLM takes out.
THOUGHTS = "<think"
_WRONG_KEY = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class NotUnderstoodError(Exception):
    """A response that is no chat completion, and no error that has a name here."""


class OpenAIChat(JsonLLM):
    """The LLM port for a model named `openai/<model>`; `api_base` ends in `/v1`."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> None:
        super().__init__(model)
        # Without a key, what LiteLLM sends.
        key = api_key or "none"
        self._http = OpenAIHttp(
            model, "/chat/completions", api_base=api_base, api_key=key, connections=0
        )
        self._litellm = LiteLLM(
            model, api_base=api_base, api_key=api_key, timeout_s=timeout_s, retry=retry
        )
        self._timeout_s = timeout_s
        self._retry = retry
        self._through_litellm = False

    async def table(self) -> Any:
        return await self._litellm.table()

    async def close(self) -> None:
        await self._http.close()

    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
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
        body = {"model": self._http.remote_model, **options}

        async def once(limit_s: float) -> bytes:
            return await self._post(body, limit_s)

        content = await retried(once, self._retry, timeout_s=self._timeout_s, model=self.name)
        try:
            answer = orjson.loads(content)
            choice, usage = answer["choices"][0], answer.get("usage") or {}
            text = choice["message"].get("content") or ""
            if not isinstance(text, str) or text.lstrip().startswith(THOUGHTS):
                raise NotUnderstoodError
            return Reply(
                text=text,
                finish_reason=choice.get("finish_reason"),
                prompt_tokens=int(usage.get("prompt_tokens") or 0),
                completion_tokens=int(usage.get("completion_tokens") or 0),
                cost_usd=_price(await self.table(), self._http.remote_model, answer),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise NotUnderstoodError from None

    async def _post(self, body: Mapping[str, Any], limit_s: float) -> bytes:
        response = await self._http.post(body, limit_s=limit_s)
        if response.status == HTTPStatus.OK:
            return response.content
        error = self._http.error(response)
        if not isinstance(error, ModelRejected) or response.status in _WRONG_KEY:
            raise error
        refusal = rejection(response.status, response.content.decode(errors="replace"))
        if refusal is ModelRejected:
            raise NotUnderstoodError
        raise refusal(str(error))


def _price(litellm: Any, model: str, answer: Mapping[str, Any]) -> float | None:
    """The price of the answer in dollars; None for a model that LiteLLM's table does not hold."""
    model = answer.get("model") or model
    if model not in litellm.model_cost or not answer.get("usage"):
        return None
    response = litellm.ModelResponse(model=model, usage=answer["usage"])
    price: float = litellm.completion_cost(response, model=model, custom_llm_provider="openai")
    return price
