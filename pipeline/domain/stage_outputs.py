"""Outputs of the stages, stored in the ledger as JSON for the stages after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from pipeline.domain.consolidation.cosine_scale import FAR
from pipeline.domain.events import StageName
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import FactMemory, GraphChanges, GraphStatus
from pipeline.domain.lanes import Batch
from pipeline.domain.modes import ChosenMode, Mode

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Extracted:
    """Output of EXTRACT. `note`: reason for no facts. `answer`: answer to a question, if any.

    `mode`: the mode of the whole batch; None if it has none, as a verbatim add. `left_out`:
    positions of the events of which text was not read; their receipts have the note with facts too.
    """

    facts: tuple[Fact, ...]
    note: str | None = None
    answer: dict[str, Any] | None = None
    mode: ChosenMode | None = None
    left_out: tuple[int, ...] = ()

    @property
    def appends(self) -> bool:
        """True if the facts are added without a decision."""
        return self.mode is not None and self.mode.mode is Mode.APPEND


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Vectors, equal memories and neighbours of the facts.

    `vectors`: one per fact, packed. `known`: the memory that holds exactly the fact's text.
    `settled`: the decisions that need no model; None in outputs of releases that saved none.
    `far`: the cosine below which a text without a common word or slot is about another matter.
    """

    vectors: tuple[str, ...]
    known: tuple[UUID | None, ...]
    neighbours: tuple[Neighbour, ...] = ()
    settled: tuple[Decision, ...] | None = None
    far: float = FAR


@dataclass(frozen=True, slots=True)
class Consolidated:
    """Output of CONSOLIDATE: the decisions on each fact, in the order of the facts.

    `mode`: APPEND if the budget was used up before the call.
    """

    decisions: tuple[Decision, ...]
    mode: ChosenMode | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """Output of APPLY: positions of the facts to relate, the id of the memory of each, and more.

    `outcomes` is parallel to both; empty in outputs of earlier releases.
    """

    changed: tuple[int, ...]
    memories: tuple[UUID, ...] = ()
    outcomes: tuple[FactMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """Output of RELATE. `detail`: the reason, unless the status is SUCCEEDED."""

    status: GraphStatus
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


def mode_of(batch: Batch) -> ChosenMode | None:
    """The mode in which the batch was processed; None for verbatim adds and questions."""
    consolidated, extracted = read_if_any(batch, Consolidated), read_if_any(batch, Extracted)
    if consolidated is not None and consolidated.mode is not None:
        return consolidated.mode
    return extracted.mode if extracted else None


def read_if_any(batch: Batch, kind: type[V]) -> V | None:
    """The batch's output of this kind; None if its stage has not run."""
    return read(batch, kind) if _STAGE_OF[kind] in batch.outputs else None
