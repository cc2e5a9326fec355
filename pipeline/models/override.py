"""Which models a batch is worked with: the configured ones, unless its replay asks for others."""

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
    model: MemoryModel
    embedder: Embedder
    index: VectorIndex


@dataclass(frozen=True, slots=True)
class Workshop:
    """Builds models by name. Errors: InvalidInput for a name that cannot be had here."""

    model: Callable[[str], MemoryModel]
    embedder: Callable[[str], Embedder]

    @classmethod
    def of(
        cls, model: Callable[[str], MemoryModel], embedder: Callable[[str], Embedder]
    ) -> Workshop:
        """Each model is built when it is first asked for, and kept as long as the process."""
        return cls(cache(model), cache(embedder))


def _none(name: str) -> MemoryModel:
    raise InvalidInput(f"{name} cannot be had here: only the configured models can.")


def _no_embedder(name: str) -> Embedder:
    raise InvalidInput(f"{name} cannot be had here: only the configured embedder can.")


ONLY_CONFIGURED = Workshop(_none, _no_embedder)


def choose(batch: Batch, configured: Chosen, workshop: Workshop, ledger: ModelStores) -> Chosen:
    """Errors: InvalidInput, as Workshop."""
    asked, chosen = batch.override, configured
    if asked.embedder and asked.embedder != chosen.embedder.name:
        embedder = workshop.embedder(asked.embedder)
        chosen = replace(chosen, embedder=embedder, index=chosen.index.read_with(embedder))
    if asked.recorded:
        return replace(chosen, model=RecordedModel(batch, ledger))
    if asked.llm and asked.llm != chosen.model.name:
        return replace(chosen, model=workshop.model(asked.llm))
    return chosen
