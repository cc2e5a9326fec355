"""Chat completions of any provider LiteLLM knows, asked for JSON as strictly as it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, assert_never

from pipeline.adapters.litellm_client import FormatRefused, LimitRefused, LiteLLMClient
from pipeline.adapters.provider_calls import DEFAULT_RETRY, RetryPolicy
from pipeline.domain import Usage
from pipeline.errors import ModelRejected, paid
from pipeline.ports import ChatTurn, Completion

# Several times the longest honest answer to a full batch, with the thoughts of a reasoning model.
MAX_TOKENS = 16_384


class Format(IntEnum):
    """How the answer's form is asked for, strictest first. The prompt asks for JSON in any case."""

    JSON_SCHEMA = 0
    JSON_OBJECT = 1
    PLAIN = 2


class LiteLLM:
    """The LLM port over LiteLLM: `model` is a LiteLLM name such as `openai/gpt-4o-mini`.

    A provider that refuses a response format (HTTP 400) is asked with the next plainer one, and
    that is remembered for the life of the process. A truncated answer is returned as it is: its
    JSON breaks off, which the parser says better.
    """

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
        self._format: Format | None = None

    @property
    def name(self) -> str:
        return self._client.model

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        response = await self._ask(messages, schema_name, schema)
        usage = _usage(response, self.name)
        with paid(usage):
            return Completion(_text(response, self.name), usage)

    async def _ask(
        self, messages: list[dict[str, str]], name: str, schema: Mapping[str, object]
    ) -> Any:
        if self._format is None:
            self._format = _strictest(await self._client.litellm(), self.name)
        for form in list(Format)[self._format :]:
            try:
                response = await self._limited(
                    messages=messages, temperature=0, **_response_format(form, name, schema)
                )
            except FormatRefused:
                continue
            self._format = form
            return response
        raise ModelRejected(f"{self.name}: refuses every response format")

    async def _limited(self, **arguments: Any) -> Any:
        """An answer of limited length; of any, from a server whose context cannot hold so much."""
        limit = _longest(await self._client.litellm(), self.name)
        try:
            return await self._client.call("acompletion", max_tokens=limit, **arguments)
        except LimitRefused:
            return await self._client.call("acompletion", **arguments)


def _longest(litellm: Any, model: str) -> int:
    """MAX_TOKENS, or what the model is known to give at most."""
    costs = litellm.model_cost
    known = costs.get(model) or costs.get(model.partition("/")[2]) or {}
    return min(MAX_TOKENS, int(known.get("max_output_tokens") or MAX_TOKENS))


def _strictest(litellm: Any, model: str) -> Format:
    """The strictest format worth trying: a schema, unless the model is known not to take one.

    LiteLLM answers False for every model it has not heard of, and most servers behind an
    OpenAI-compatible base (vLLM, llama.cpp, LM Studio, Ollama) do take a schema: those are tried.
    """
    known = model in litellm.model_cost or model.partition("/")[2] in litellm.model_cost
    if known and not litellm.supports_response_schema(model):
        return Format.JSON_OBJECT
    return Format.JSON_SCHEMA


def _response_format(form: Format, name: str, schema: Mapping[str, object]) -> dict[str, Any]:
    match form:
        case Format.JSON_SCHEMA:
            described = {"name": name, "schema": dict(schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case Format.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Format.PLAIN:
            return {}
        case _:
            assert_never(form)


def _text(response: Any, model: str) -> str:
    """The answer; empty where there is none. A provider's content filter is a rejection."""
    choices = getattr(response, "choices", None) or ()
    if not choices:
        return ""
    text: str = choices[0].message.content or ""
    if choices[0].finish_reason == "content_filter" and not text:
        raise ModelRejected(f"{model}: the provider's content filter withheld the answer")
    return text


def _usage(response: Any, model: str) -> Usage:
    used = getattr(response, "usage", None)
    # LiteLLM has worked the price out for its own log; None where it does not know the model.
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    return Usage(
        model=model,
        calls=1,
        prompt_tokens=getattr(used, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(used, "completion_tokens", 0) or 0,
        cost_usd=hidden.get("response_cost"),
    )
