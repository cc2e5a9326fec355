"""Choice of the models for a batch: the configured ones, unless its replay names others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from pipeline.domain.errors import InvalidInput
from pipeline.domain.lanes import Batch
from pipeline.models.ports import ModelStores
from pipeline.models.recorded import RecordedModel
from pipeline.ports import Embedder, MemoryModel
from pipeline.vector_index.index import VectorIndex


@dataclass(frozen=True, slots=True)
class Chosen:
    """The models of a batch, and the index that searches with this embedder."""

    model: MemoryModel
    embedder: Embedder
    index: VectorIndex


@dataclass(frozen=True, slots=True)
class ModelFactory:
    """Factory of models by name. Errors: InvalidInput for a name that is not available."""

    model: Callable[[str], MemoryModel]
    embedder: Callable[[str], Embedder]

    @classmethod
    def of(
        cls, model: Callable[[str], MemoryModel], embedder: Callable[[str], Embedder]
    ) -> ModelFactory:
        """A factory that builds each model at its first use and keeps it until the process ends."""
        return cls(cache(model), cache(embedder))


def _none(name: str) -> MemoryModel:
    raise InvalidInput(f"{name} cannot be had here: only the configured models can.")


def _no_embedder(name: str) -> Embedder:
    raise InvalidInput(f"{name} cannot be had here: only the configured embedder can.")


ONLY_CONFIGURED = ModelFactory(_none, _no_embedder)


def choose(
    batch: Batch, configured: Chosen, model_factory: ModelFactory, ledger: ModelStores
) -> Chosen:
    """The models for a batch.

    With another embedder, search uses the vectors that this embedder made. `recorded` in the
    batch's override wins over `llm`.

    Errors: InvalidInput if the override names a model that is not available.
    """
    chosen, override = configured, batch.override
    if override.embedder and override.embedder != chosen.embedder.name:
        embedder = model_factory.embedder(override.embedder)
        chosen = replace(chosen, embedder=embedder, index=chosen.index.read_with(embedder))
    if override.recorded:
        return replace(chosen, model=RecordedModel(batch, ledger))
    if override.llm and override.llm != chosen.model.name:
        return replace(chosen, model=model_factory.model(override.llm))
    return chosen
