"""What stages hand to the stages after them, through the ledger: JSON in, values out."""

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
    """`note` says why an event has no facts, where it has none; `answer` is that to a question."""

    facts: tuple[Fact, ...]
    note: str | None = None
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """`vectors`: one a fact, packed; `known`: the memory that holds exactly the fact's text."""

    vectors: tuple[str, ...]
    known: tuple[UUID | None, ...]
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Consolidated:
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """`changed`: facts the graph should hear of; `memories`: what each of them changed."""

    changed: tuple[int, ...]
    memories: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """`status` is SUCCEEDED or FAILED; `detail` says why it failed."""

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
    return _ADAPTERS[type(output)].dump_python(output, mode="json")


def read(batch: Batch, kind: type[V]) -> V:
    """What the batch's stage of this kind put out."""
    value: V = _ADAPTERS[kind].validate_python(batch.outputs[_STAGE_OF[kind]])
    return value


def read_if_any(batch: Batch, kind: type[V]) -> V | None:
    return read(batch, kind) if _STAGE_OF[kind] in batch.outputs else None
