"""Warm-up: the models that a process loads before its first request."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline import bootstrap
from pipeline.adapters import litellm_client
from pipeline.adapters.embedder_hash import HashEmbedder
from pipeline.domain.vectors import Vector
from pipeline.settings import MINILM, NO_MODEL, RULES, ModelSettings


class NamedEmbedder(HashEmbedder):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.called = name
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return self.called

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += texts
        return await super().embed(texts)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each load of LiteLLM."""
    loaded: list[str] = []
    monkeypatch.setattr(litellm_client, "load", lambda: loaded.append("litellm"))
    return loaded


async def test_the_built_in_models_load_no_litellm(loads: list[str]) -> None:
    embedder = NamedEmbedder(MINILM)
    models = [ModelSettings(model=name) for name in (RULES, MINILM, NO_MODEL)]
    await bootstrap.warm(embedder, *models)
    assert embedder.asked
    assert not loads


async def test_a_model_elsewhere_is_not_asked_only_to_be_warm(loads: list[str]) -> None:
    embedder = NamedEmbedder("openai/somewhere")
    await bootstrap.warm(embedder, ModelSettings(model=embedder.name))
    assert not embedder.asked
    assert loads == ["litellm"]
