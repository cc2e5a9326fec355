"""Chat completions of any provider that LiteLLM supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.llm_json import ERROR, REFUSAL, Abilities, JsonLLM, Reply
from pipeline.adapters.provider_calls import RemoteModel


class LiteLLM(JsonLLM):
    """The LLM port over LiteLLM: `model` is a LiteLLM name such as `openai/gpt-4o-mini`."""

    def __init__(self, remote: RemoteModel) -> None:
        super().__init__(remote.name)
        self._client = LiteLLMClient(remote)

    async def abilities(self) -> Abilities:
        """The abilities of the model. LiteLLM also denies all of them to models that it does not
        know, but most servers behind an OpenAI-compatible base URL do support a schema.
        """
        litellm = await self._client.litellm()
        model, costs = self.name, litellm.model_cost
        known = costs.get(model) or costs.get(model.partition("/")[2])
        if not known:
            return Abilities()
        return Abilities(
            int(known.get("max_output_tokens") or 0) or None,
            bool(litellm.supports_response_schema(model)),
            bool(litellm.supports_function_calling(model)),
        )

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
        finish_reason=_finish_reason(choices[0]) if choices else None,
        prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
        cost_usd=hidden.get("response_cost"),
    )


def _finish_reason(choice: Any) -> str | None:
    """The finish reason. LiteLLM keeps an error or a refusal among the provider's own fields."""
    fields = getattr(choice, "provider_specific_fields", None) or {}
    own = getattr(choice.message, "provider_specific_fields", None) or {}
    reason: str | None = choice.finish_reason
    return ERROR if fields.get("error") else REFUSAL if own.get("refusal") else reason


def _text(message: Any) -> str:
    """The arguments of the function that the model has called, or else its text."""
    calls = getattr(message, "tool_calls", None)
    text: str | None = calls[0].function.arguments if calls else message.content
    return text or ""
