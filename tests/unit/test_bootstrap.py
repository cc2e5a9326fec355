"""The composition root: stores, and the models that are loaded before the first request."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import SecretStr

from pipeline import bootstrap
from pipeline.adapters import litellm_client
from pipeline.domain.errors import InvalidInput
from pipeline.domain.vectors import Vector
from pipeline.ledger.engine import connect
from pipeline.model_settings import MINILM, NO_MODEL, RULES, LLMSettings, ModelSettings
from pipeline.models.circuits import Circuits
from pipeline.models.fallbacks import FallbackModel
from pipeline.settings import Settings
from tests.support.embedder_hash import HashEmbedder
from tests.support.llm_server import LLMServer


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
    await bootstrap.warm(*models)
    assert not loads
    await bootstrap.warm_embedder(embedder)
    assert embedder.asked


async def test_a_model_that_is_called_over_plain_http_loads_no_litellm(loads: list[str]) -> None:
    address = "http://127.0.0.1:1/v1"
    await bootstrap.warm(ModelSettings(model="openai/gpt-4o-mini", api_base=address))
    await bootstrap.warm(ModelSettings(model="openai/gpt-4o-mini", api_key=SecretStr("sk-test")))
    assert not loads


async def test_a_key_of_the_environment_is_used_without_litellm_but_not_at_another_address(
    loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    async with LLMServer() as server:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, server.base_url)
        for settings in (
            ModelSettings(model="openai/any"),
            ModelSettings(model="openai/any", api_base=server.base_url),
        ):
            await bootstrap.warm(settings)
            chat = bootstrap.build_chat(settings)
            await chat.chat([{"role": "user", "content": "Hi"}])
            await chat.close()
        assert [call.headers["authorization"] for call in server.calls] == [
            "Bearer sk-test",
            "Bearer none",
        ]
    assert not loads


async def test_a_model_elsewhere_is_not_asked_only_to_be_warm(loads: list[str]) -> None:
    embedder = NamedEmbedder("voyage/somewhere")
    await bootstrap.warm(ModelSettings(model=embedder.name))
    await bootstrap.warm_embedder(embedder)
    assert not embedder.asked
    assert loads == ["litellm"]


async def test_a_chain_is_built_for_fallbacks_only_and_not_for_the_model_of_a_replay() -> None:
    engine = connect("postgresql://nobody@127.0.0.1:1/none", pool_size=1)
    circuits = Circuits(engine)
    llm = LLMSettings(model="openai/a", fallbacks=(ModelSettings(model=RULES),))
    models = [
        bootstrap.build_llm(llm, circuits),
        bootstrap.build_llm(LLMSettings(model=RULES), circuits),
        bootstrap.build_model(llm.named("openai/b", ["openai/b"]), circuits),
    ]
    assert [isinstance(model, FallbackModel) for model in models] == [True, False, False]
    assert [model.name for model in models] == ["openai/a", RULES, "openai/b"]
    await engine.dispose()


async def test_a_graph_server_is_used_if_it_is_configured() -> None:
    nowhere = {"database_url": "postgresql://nobody@127.0.0.1:1/none", "chroma_url": "http://x"}
    without = bootstrap.stores(Settings.model_validate(nowhere))
    assert without.mirroring is None
    await without.close()
    bolt = nowhere | {"graph_store": "bolt"}
    with pytest.raises(InvalidInput, match="MEMLANE_BOLT_URL"):
        bootstrap.stores(Settings.model_validate(bolt))
    built = bootstrap.stores(Settings.model_validate(bolt | {"bolt_url": "bolt://x:1"}))
    assert built.mirroring is not None
    assert built.mirroring.mirror.name == "bolt://x:1/"
    await built.close()
