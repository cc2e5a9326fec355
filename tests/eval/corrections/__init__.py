"""Corrections: updates that must take, and careless changes that must not.

Each file has cases of one language. `updates` and `careless` were written before the rule for slots
with one value, `later_updates` and `later_careless` after it. A case has the stored memory, its
slot, a fact, the fact's slot where it is another one, and the text that a decision writes; `new:
null` is a DELETE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Fact, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from pipeline.domain.writes import ScopeMemories, Write
from pipeline.text.statements.slots import SEPARATOR
from tests.support.memories import active_memory

FOLDER = Path(__file__).parent
LONG = FOLDER / "long"
FOREIGN = FOLDER / "foreign"
SCOPE = Scope(ProjectId(UUID(int=1)), user_id="user")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)


class Kind(StrEnum):
    """Kinds of cases, as the keys of a file."""

    UPDATES = "updates"
    CARELESS = "careless"
    LATER_UPDATES = "later_updates"
    LATER_CARELESS = "later_careless"

    @property
    def is_update(self) -> bool:
        """True if the change must be applied."""
        return self in (Kind.UPDATES, Kind.LATER_UPDATES)


class Verdict(StrEnum):
    """Effect of a decision on the store.

    APPLIED: the new text stands. FLAGGED: the memory stays, and an open suggestion names the
    change. DOUBLED: both texts stand, and nothing says so.
    """

    APPLIED = "applied"
    FLAGGED = "flagged"
    DOUBLED = "doubled"


@dataclass(frozen=True, slots=True)
class Case:
    """A stored memory, a fact, and the text that the decision writes (None: a DELETE)."""

    kind: Kind
    language: str
    memory: str
    slot: str | None
    fact: str
    fact_slot: str | None
    new: str | None

    def verdict(self) -> Verdict:
        """Apply the decision to the stored memory."""
        memories = ScopeMemories.of(SCOPE, [self._stored()])
        [change, *_] = apply_writes([self._write()], memories)
        stored = memories.by_id[UUID(int=11)]
        if stored.text != self.memory or stored.state != "ACTIVE":
            return Verdict.APPLIED
        return Verdict.FLAGGED if change.suggestion else Verdict.DOUBLED

    def _stored(self) -> Memory:
        memory = active_memory(11, SCOPE, self.memory, THEN)
        return replace(memory, **_labels(self.slot))

    def _write(self) -> Write:
        fact = Fact(self.fact, Source(event=0, message=0))
        return Write(
            position=0,
            fact=replace(fact, **_labels(self.fact_slot)),
            outcome=Outcome.UPDATE if self.new else Outcome.DELETE,
            text=self.new or self.fact,
            reason="",
            target=UUID(int=11),
            new_id=UUID(int=12),
            vector=as_vector((1.0, 0.0)),
            fact_vector=as_vector((0.0, 1.0)),
            event=EVENT,
            said_at=NOW,
        )


def without_slots(case: Case) -> Case:
    """The case as a model states it that names no attributes."""
    return replace(case, slot=None, fact_slot=None)


def cases(folder: Path = FOLDER) -> Iterator[Case]:
    """All cases of all languages.

    LONG: long sentences of several clauses, in five languages. FOREIGN: corrections and outdated
    facts in the manner of other systems' memories, written before any rule was read or run on them.
    """
    for path in sorted(folder.glob("*.yaml")):
        for kind, rows in yaml.safe_load(path.read_text()).items():
            for row in rows:
                yield Case(
                    Kind(kind),
                    path.stem,
                    row["memory"],
                    row["slot"],
                    row["fact"],
                    row.get("fact_slot", row["slot"]),
                    row["new"],
                )


def _labels(slot: str | None) -> dict[str, Any]:
    subject, _, attribute = (slot or "").partition(SEPARATOR)
    return {"subject": subject, "attribute": attribute} if slot else {}
