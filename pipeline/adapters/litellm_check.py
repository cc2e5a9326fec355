"""What LiteLLM knows about a model without a call: its provider, and the keys it looks for."""

from __future__ import annotations

from pipeline.adapters import litellm_client


def has_provider(model: str, api_base: str | None) -> bool:
    """Whether LiteLLM knows a provider for this name. Blocks: loads litellm."""
    litellm = litellm_client.load()
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except litellm.BadRequestError:
        return False
    return True


def missing_keys(model: str) -> list[str]:
    """The variables LiteLLM looks for and that are not set; for some providers they are optional.

    Blocks: loads litellm.
    """
    found = litellm_client.load().validate_environment(model)
    return list(found["missing_keys"])
