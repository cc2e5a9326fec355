"""Chat completions of any provider that LiteLLM supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.llm_json import JsonLLM, Reply
from pipeline.adapters.provider_calls import RemoteModel


class LiteLLM(JsonLLM):
    """The LLM port over LiteLLM: `model` is a LiteLLM name such as `openai/gpt-4o-mini`."""

    def __init__(self, remote: RemoteModel) -> None:
        super().__init__(remote.name)
        self._client = LiteLLMClient(remote)

    async def table(self) -> Any:
        """The litellm module, for its table of models' limits and prices."""
        return await self._client.litellm()

    async def close(self) -> None:
        """Nothing to release: LiteLLM keeps its connections until the process ends."""

    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """One chat completion through LiteLLM. Errors: as `JsonLLM.chat`."""
        return _reply(await self._client.call("acompletion", messages=messages, **options))


def _reply(response: Any) -> Reply:
    """The first choice of a response; an empty text if there is none."""
    choices = getattr(response, "choices", None) or ()
    usage = getattr(response, "usage", None)
    # LiteLLM computes the price for its own log; None for a model that it has no price for.
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    return Reply(
        text=_text(choices[0].message) if choices else "",
        finish_reason=choices[0].finish_reason if choices else None,
        prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
        cost_usd=hidden.get("response_cost"),
    )


def _text(message: Any) -> str:
    """The arguments of the function that the model has called, or else its text."""
    calls = getattr(message, "tool_calls", None)
    text: str | None = calls[0].function.arguments if calls else message.content
    return text or ""
