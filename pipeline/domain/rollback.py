"""Pure functions that compute the undo of one event from a memory's history.

e1 ADD, e2 UPDATE              undo e2: back to e1's text      undo e1: refused, changed since
e1 ADD, e2 UPDATE, e2 undone   e2 no longer counts             undo e1: retired
e1 ADD, UPDATE by a user       undo e1: refused, changed since by a person
e1 ADD, e2 NOOP on it          undo e1: refused, stated again since
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain.memories import Memory
from pipeline.text.equality import text_hash

# Lane id and text hash: at most one active memory has each.
TextKey = tuple[UUID, bytes]


@dataclass(frozen=True, slots=True)
class PastState:
    """A state of a memory in its history.

    `text`: None if the memory was retired. `event_id`: None if a user or an undo made the change.
    `undoes`: the event that an undo reverts. `structure`: see `pipeline.domain.memories`.
    `version`: its number in the history, which is no part of a comparison.
    """

    text: str | None
    metadata: dict[str, Any]
    expiration_date: date | None
    event_id: UUID | None
    message_ordinal: int | None
    undoes: UUID | None
    said_at: datetime
    valid_from: datetime
    structure: Mapping[str, Any]
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class UndoStep:
    """Undo of one memory: back to the state `to`; retired if `to` is None.

    `former_version`: the last version before the event, which has that state, too. `obstacle`:
    reason why the step is refused, or None. `copy`: a user gave this memory the text of another
    one; its stored hash is not that of the text, so both can have it.
    """

    memory: Memory
    to: PastState | None
    former_version: int = 0
    obstacle: str | None = None
    copy: bool = False

    @property
    def text(self) -> str | None:
        """Text of the memory after the step; None if it is retired."""
        return self.to.text if self.to else None

    @property
    def is_same_copy(self) -> bool:
        """True if the memory is a copy and keeps its text."""
        return self.copy and self.text == self.memory.text


def effective(states: Iterable[PastState]) -> list[PastState]:
    """States without undone ones and their undos, oldest first."""
    stacks = [stack for _, stack in _stacks(states)]
    return stacks[-1] if stacks else []


def versions_of_present(states: Iterable[PastState]) -> list[int]:
    """Numbers of the versions with the present state: that of the state, and those of the undos
    that returned to it.
    """
    tops = [(state.version, stack[-1].version if stack else 0) for state, stack in _stacks(states)]
    return [version for version, top in tops if top == tops[-1][1]]


def _stacks(states: Iterable[PastState]) -> Iterator[tuple[PastState, list[PastState]]]:
    """Each state with the states in effect after it: the same list, which changes."""
    stack: list[PastState] = []
    for state in states:
        if state.undoes is None:
            stack.append(state)
        while state.undoes and stack and stack[-1].event_id == state.undoes:
            stack.pop()
        yield state, stack


def undo_step(event_id: UUID, memory: Memory, states: Iterable[PastState]) -> UndoStep | None:
    """The step to the state before the event; None if no effect of the event is left."""
    stack = effective(states)
    positions = [at for at, state in enumerate(stack) if state.event_id == event_id]
    if not positions:
        return None
    first, last = positions[0], positions[-1]
    former = stack[first - 1] if first else None
    step = UndoStep(memory, former, former_version=stack[first].version - 1)
    if last - first + 1 == len(positions) and last == len(stack) - 1:
        # A repeat by another event moves the time of the memory, without a state of its own.
        again = memory.said_at > stack[-1].said_at
        obstacle = f"Memory {memory.id} was stated again since, at {memory.said_at.isoformat()}."
        return replace(step, obstacle=obstacle) if again else step
    later = next(state for state in stack[first:] if state.event_id != event_id)
    author = f"event {later.event_id}" if later.event_id else "a person"
    return replace(step, obstacle=f"Memory {memory.id} was changed since by {author}.")


def refuse_taken_texts(
    steps: Sequence[UndoStep], holders: Mapping[TextKey, UUID]
) -> list[UndoStep]:
    """The steps, with an obstacle for each whose text another memory of the scope will have.

    `holders`: id of the memory that has each text now. A refused step keeps its memory's text
    taken, which can block another step, so the check repeats until nothing changes.
    """
    checked = _refuse_once(steps, holders)
    return checked if checked == list(steps) else refuse_taken_texts(checked, holders)


def _refuse_once(steps: Sequence[UndoStep], holders: Mapping[TextKey, UUID]) -> list[UndoStep]:
    """Set the obstacles that the texts of the present steps cause."""
    changing = {step.memory.id for step in steps if step.obstacle is None}
    taken = {key: holder for key, holder in holders.items() if holder not in changing}
    checked = []
    for step in steps:
        if step.obstacle is None and step.text is not None and not step.is_same_copy:
            key = (step.memory.lane_id, text_hash(step.text))
            holder = taken.setdefault(key, step.memory.id)
            if holder != step.memory.id:
                reason = f"Memory {step.memory.id}: its former text is held by memory {holder} now."
                step = replace(step, obstacle=reason)  # noqa: PLW2901
        checked.append(step)
    return checked
