"""Outputs of the stages, stored in the ledger as JSON for the stages after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges
from pipeline.domain.lanes import Batch

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Extracted:
    """Output of EXTRACT. `note`: reason for no facts. `answer`: answer to a question, if any."""

    facts: tuple[Fact, ...]
    note: str | None = None
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Vectors, equal memories and neighbours of the facts.

    `vectors`: one per fact, packed. `known`: the memory that holds exactly the fact's text.
    `settled`: the decisions that need no model; None in outputs of releases that saved none.
    """

    vectors: tuple[str, ...]
    known: tuple[UUID | None, ...]
    neighbours: tuple[Neighbour, ...] = ()
    settled: tuple[Decision, ...] | None = None


@dataclass(frozen=True, slots=True)
class Consolidated:
    """Output of CONSOLIDATE: one decision per fact."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """Output of APPLY: positions of the facts that changed a memory, and that memory's id."""

    changed: tuple[int, ...]
    memories: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """Output of RELATE. `status` is SUCCEEDED or FAILED; `detail` is the reason for FAILED."""

    status: str
    changes: GraphChanges
    detail: str | None = None


_STAGE_OF: dict[type, StageName] = {
    Extracted: StageName.EXTRACT,
    Retrieved: StageName.RETRIEVE,
    Consolidated: StageName.CONSOLIDATE,
    Applied: StageName.APPLY,
    Related: StageName.RELATE,
}
_ADAPTERS: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _STAGE_OF}


def dump(output: object) -> Any:
    """A stage's output as JSON values."""
    return _ADAPTERS[type(output)].dump_python(output, mode="json")


def read(batch: Batch, kind: type[V]) -> V:
    """The batch's output of this kind. Errors: KeyError if its stage has not run."""
    value: V = _ADAPTERS[kind].validate_python(batch.outputs[_STAGE_OF[kind]])
    return value


def read_if_any(batch: Batch, kind: type[V]) -> V | None:
    """The batch's output of this kind; None if its stage has not run."""
    return read(batch, kind) if _STAGE_OF[kind] in batch.outputs else None
