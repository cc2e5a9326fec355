"""From a memory's history to the way back from one event, as pure functions.

e1 ADD, e2 UPDATE              undo e2: back to what e1 said          undo e1: changed since
e1 ADD, e2 UPDATE, e2 undone   e2 no longer counts                    undo e1: retired
e1 ADD, a person's UPDATE      undo e1: changed since, by a person
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain.memories import Memory
from pipeline.text.equality import text_hash

# A scope holds each text once: its lane, and the text's hash.
Place = tuple[UUID, bytes]


@dataclass(frozen=True, slots=True)
class State:
    """A state a memory had. `text` is None where it was retired; `event_id` where a person, or an
    undo, brought it about; `undoes` names the event it takes back.
    """

    text: str | None
    metadata: dict[str, Any]
    expiration_date: date | None
    event_id: UUID | None
    message_ordinal: int | None
    undoes: UUID | None
    valid_from: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """One memory's way back: to `to`, or out of sight where there was nothing before.

    `obstacle` says why it cannot be gone. `copy`: another memory had the same text when a person
    gave it to this one; its hash is not that of the text, so it comes back beside the other.
    """

    memory: Memory
    to: State | None
    obstacle: str | None = None
    copy: bool = False

    @property
    def text(self) -> str | None:
        """What the memory says afterwards; None where it is retired."""
        return self.to.text if self.to else None

    @property
    def is_same_copy(self) -> bool:
        return self.copy and self.text == self.memory.text


def standing(states: Iterable[State]) -> list[State]:
    """The states that still count, oldest first: an undo takes away what it undid, and itself."""
    stack: list[State] = []
    for state in states:
        if state.undoes is None:
            stack.append(state)
        while state.undoes and stack and stack[-1].event_id == state.undoes:
            stack.pop()
    return stack


def way_back(event_id: UUID, memory: Memory, states: Iterable[State]) -> Step | None:
    """The step before the event; None where nothing the event did to the memory stands."""
    stack = standing(states)
    mine = [place for place, state in enumerate(stack) if state.event_id == event_id]
    if not mine:
        return None
    first, last = mine[0], mine[-1]
    step = Step(memory, stack[first - 1] if first else None)
    if last - first + 1 == len(mine) and last == len(stack) - 1:
        return step
    later = next(state for state in stack[first:] if state.event_id != event_id)
    who = f"event {later.event_id}" if later.event_id else "a person"
    return replace(step, obstacle=f"Memory {memory.id} was changed since by {who}.")


def with_free_texts(steps: Sequence[Step], holders: Mapping[Place, UUID]) -> list[Step]:
    """The steps, with an obstacle for each whose text another memory of the scope holds by then.

    `holders`: who holds which text in which lane now. A step that cannot be gone keeps its memory's
    text taken, which may stop another one: so again, until nothing changes.
    """
    checked = _once(steps, holders)
    return checked if checked == list(steps) else with_free_texts(checked, holders)


def _once(steps: Sequence[Step], holders: Mapping[Place, UUID]) -> list[Step]:
    leaving = {step.memory.id for step in steps if step.obstacle is None}
    taken = {place: holder for place, holder in holders.items() if holder not in leaving}
    checked = []
    for step in steps:
        if step.obstacle is None and step.text is not None and not step.is_same_copy:
            place = (step.memory.lane_id, text_hash(step.text))
            holder = taken.setdefault(place, step.memory.id)
            if holder != step.memory.id:
                said = f"Memory {step.memory.id}: its former text is held by memory {holder} now."
                step = replace(step, obstacle=said)  # noqa: PLW2901
        checked.append(step)
    return checked
