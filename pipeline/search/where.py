"""Conditions of a search: which passages a query compares, and what its statements depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_

from pipeline.domain.filters import AllOf, Filter, Test, of_pins_only, pinned
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import CURRENT, Snapshot, SnapshotKind
from pipeline.ledger.filter_conditions import matching, shape
from pipeline.ledger.tables import memories
from pipeline.memories.expiration import unexpired
from pipeline.memories.superseded import superseded
from pipeline.turns.store import turn_passages
from pipeline.versions.states import AS_OF, VALID_AT, is_older, pin_values, reference_time, states


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a query that its statements depend on; `tree` has parameter names as values."""

    tree: Filter
    facts: bool
    turns: bool
    expired: bool
    older: bool
    snapshot: SnapshotKind = CURRENT.kind
    pins: tuple[str, ...] = ()

    def on(self, table: FromClause) -> ColumnElement[bool]:
        """The condition on the rows of this table."""
        matches = matching(self.tree, table)
        at = reference_time(self.snapshot)
        return matches if self.expired else and_(matches, unexpired(table, at))

    @property
    def is_current(self) -> bool:
        """True for a search of the current memories."""
        return self.snapshot == CURRENT.kind

    @property
    def memories(self) -> FromClause:
        """The memories to search: the table itself, or their states at a time."""
        return memories if self.is_current else states(self.snapshot, self.pins)

    @property
    def on_facts(self) -> ColumnElement[bool]:
        """The condition on rows of `memories`; with `older`, also on superseded ones."""
        if self.is_current:
            return self.on_current(memories)
        here = self.on(self.memories)
        return here if self.older else and_(here, ~is_older(self.memories))

    def on_current(self, table: FromClause) -> ColumnElement[bool]:
        """The condition on rows of `memories`, or of a subquery with its columns."""
        active = and_(table.c.state == "ACTIVE", self.on(table))
        return active if self.older else and_(active, ~superseded(table))

    def on_turns(self, turns: FromClause = turn_passages) -> ColumnElement[bool]:
        """The condition on turns: those accepted, and said, by the times of the snapshot."""
        times = [turns.c.created_at <= AS_OF] * self.snapshot.as_of
        times += [turns.c.said_at <= VALID_AT] * self.snapshot.valid_at
        return and_(self.on(turns), *times)


@dataclass(frozen=True, slots=True)
class Where:
    """The passages that a query compares: facts, turns or both, of one project.

    `pins`: the entity ids that every match has; `of_pins_only`: there is no other condition.
    """

    shape: Shape
    values: Mapping[str, Any]
    pins: Mapping[str, str]
    of_pins_only: bool

    @classmethod
    def of(
        cls,
        project_id: ProjectId,
        tree: Filter,
        *,
        facts: bool,
        turns: bool,
        expired: bool,
        older: bool = False,
        snapshot: Snapshot = CURRENT,
    ) -> Where:
        """Select the passages of a project that match the filter, at the time of the snapshot."""
        shaped, values = shape(tree)
        values |= {"in_project": project_id}
        pins, only = pinned(tree), of_pins_only(tree)
        if snapshot.is_current:
            return cls(Shape(shaped, facts, turns, expired, older), values, pins, only)
        values |= pin_values(pins) | snapshot.values
        names, older = tuple(sorted(pins)), older or snapshot.superseded
        shaped_past = Shape(shaped, facts, turns, expired, older, snapshot.kind, names)
        return cls(shaped_past, values, pins, only)

    @classmethod
    def of_ids(cls, project_id: ProjectId, ids: Mapping[str, str]) -> Where:
        """Select all current memories with these entity ids, also expired and superseded ones."""
        tree = AllOf(tuple(Test(name, "eq", value) for name, value in ids.items()))
        return cls.of(project_id, tree, facts=True, turns=False, expired=True, older=True)

    @property
    def is_current(self) -> bool:
        """True for a search of the current memories."""
        return self.shape.is_current

    @property
    def project_id(self) -> ProjectId:
        """The project that is searched."""
        return ProjectId(self.values["in_project"])

    def with_vectors(self, *, turns: bool) -> Where | None:
        """Select the passages with vectors: no turns unless `turns`. None if none are left."""
        if turns or not self.shape.turns:
            return self
        return replace(self, shape=replace(self.shape, turns=False)) if self.shape.facts else None
