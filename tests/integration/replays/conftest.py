"""The API over a model whose facts show their instructions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from pipeline.model_settings import LLMSettings, ModelSettings
from pipeline.vector_index.index import VectorIndex
from tests.support.api_service import Service, serving
from tests.support.engine import Engine
from tests.support.replaying import Tagged

REMOTE = {
    "llm": LLMSettings(model="openai/small"),
    "embedder": ModelSettings(model="openai/words"),
    "replay_models": ("openai/big", "openai/other"),
    "max_project_replays": 3,
}


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    """A service with all vectors in one collection, so that a shadow shares it with its scope."""
    async with serving(engine.ledger) as built:
        services, stores = built.engine.services, built.api.stores
        index = VectorIndex(
            built.engine.vectors, built.engine.ledger.memory_vectors, services.embedder, buckets=1
        )
        built.engine.services = replace(services, model=Tagged(), index=index)
        settings = built.api.settings.model_copy(update=REMOTE)
        built.app.state.api = replace(
            built.api, settings=settings, stores=replace(stores, index=index)
        )
        yield built
