"""Settings of a stack for a live model or for a stand-in."""

from __future__ import annotations

import os

from pipeline.adapters.provider_calls import RemoteModel
from tests.support.llm_server import LLMServer

STAND_IN = "openai/stand-in"
# Settings that `live` passes on, for models that need more than the variables of their provider.
API_BASE, API_KEY = "MEMLANE_LLM__API_BASE", "MEMLANE_LLM__API_KEY"


def live(model: str) -> dict[str, str]:
    """A model of LiteLLM, with the key of its provider's variable or MEMLANE_LLM__API_KEY."""
    passed = {name: value for name in (API_BASE, API_KEY) if (value := os.environ.get(name))}  # noqa: TID251
    return {"MEMLANE_LLM__MODEL": model, **passed}


def remote(model: str) -> RemoteModel:
    """The same model, for calls of the evaluation itself."""
    settings = live(model)
    return RemoteModel(model, settings.get(API_BASE), settings.get(API_KEY))


def stand_in(server: LLMServer) -> dict[str, str]:
    """A stand-in for a model."""
    return {
        "MEMLANE_LLM__MODEL": STAND_IN,
        "MEMLANE_LLM__API_BASE": server.base_url,
        "MEMLANE_LLM__API_KEY": "sk-eval",
    }
