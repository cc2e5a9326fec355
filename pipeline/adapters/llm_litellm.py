"""Chat completions of any provider LiteLLM knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.llm_json import JsonLLM, Reply
from pipeline.adapters.provider_calls import DEFAULT_RETRY, RetryPolicy


class LiteLLM(JsonLLM):
    """The LLM port over LiteLLM: `model` is a LiteLLM name such as `openai/gpt-4o-mini`."""

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
        self._client = LiteLLMClient(
            model, api_base=api_base, api_key=api_key, timeout_s=timeout_s, retry=retry
        )

    async def table(self) -> Any:
        return await self._client.litellm()

    async def close(self) -> None:
        """LiteLLM keeps its connections for the life of the process."""

    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        return _reply(await self._client.call("acompletion", messages=messages, **options))


def _reply(response: Any) -> Reply:
    """The answer; an empty one where there is none."""
    choices = getattr(response, "choices", None) or ()
    usage = getattr(response, "usage", None)
    # LiteLLM has worked the price out for its own log; None where it does not know the model.
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    return Reply(
        text=(choices[0].message.content or "") if choices else "",
        finish_reason=choices[0].finish_reason if choices else None,
        prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
        cost_usd=hidden.get("response_cost"),
    )
