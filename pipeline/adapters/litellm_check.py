"""Facts about a model from LiteLLM without a call: its provider and the keys it needs."""

from __future__ import annotations

from pipeline.adapters import litellm_client
from pipeline.adapters.openai_http import PROVIDER as OPENAI_COMPATIBLE


def has_provider(model: str, api_base: str | None) -> bool:
    """True if the provider of this model is supported.

    Blocks: loads litellm, but for a model that is called without it.
    """
    if model.startswith(OPENAI_COMPATIBLE):
        return True
    litellm = litellm_client.load()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except litellm.BadRequestError:
        return False
    return True


def missing_keys(model: str) -> list[str]:
    """Environment variables that LiteLLM reads for this model and that are not set.

    For some providers they are optional.

    Blocks: loads litellm.
    """
    result = litellm_client.load().validate_environment(model)
    return list(result["missing_keys"])
