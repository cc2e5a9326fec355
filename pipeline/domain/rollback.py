"""Pure functions that compute the undo of one event from a memory's history.

e1 ADD, e2 UPDATE              undo e2: back to e1's text      undo e1: refused, changed since
e1 ADD, e2 UPDATE, e2 undone   e2 no longer counts             undo e1: retired
e1 ADD, UPDATE by a user       undo e1: refused, changed since by a person
e1 ADD, e2 NOOP on it          undo e1: refused, stated again since
e1 ADD, e2 merges another in   undo e1: refused, merged into it since
e1 ADD, e2 older, retired      undo e1: retired, and e2's statement is shown
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from pipeline.domain.memories import Memory
from pipeline.text.equality import text_hash
from pipeline.text.statements import slots

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
    """Each state with the states in effect after it: the same list, which changes.

    An undo of another memory's event can show this one, or retire it: a state in the place of the
    last one, of the same event.
    """
    stack: list[PastState] = []
    for state in states:
        before = len(stack)
        while state.undoes and stack and stack[-1].event_id == state.undoes:
            stack.pop()
        if state.undoes is None:
            stack.append(state)
        elif stack and len(stack) == before:
            event_id, ordinal = stack[-1].event_id, stack[-1].message_ordinal
            stack[-1] = replace(state, event_id=event_id, message_ordinal=ordinal, undoes=None)
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


def refuse_merged(
    steps: Sequence[UndoStep], merged: Mapping[UUID, tuple[UUID, UUID | None]]
) -> list[UndoStep]:
    """The steps, with an obstacle for each whose memory has taken in another one since.

    `merged`: for each such memory the other one, and the event that merged it, None for a person.
    """
    checked = []
    for step in steps:
        other, event_id = merged.get(step.memory.id, (None, None))
        if other and step.obstacle is None and step.memory.state == "ACTIVE":
            author = f"event {event_id}" if event_id else "a person"
            reason = (
                f"Memory {step.memory.id}: memory {other} was merged into it since by {author}."
            )
            step = replace(step, obstacle=reason)  # noqa: PLW2901
        checked.append(step)
    return checked


@dataclass(frozen=True, slots=True)
class Succession:
    """A late statement that is shown once the memory is undone that superseded it.

    `older`: statements of its slot that it supersedes in the place of that memory. `replaced`: that
    memory, if the undo has given it a text that was said earlier.
    """

    shown: Memory
    older: Sequence[Memory] = ()
    replaced: Memory | None = None


def successions(
    undone: Iterable[Memory], late: Sequence[Memory], taken: Collection[TextKey]
) -> list[Succession]:
    """The late statements to show after an undo, as if the undone event had never been.

    Those that a retired memory superseded, and those that were said later than the text that a
    memory is restored to. Of a slot with one value at a time the newest. `undone`: the memories
    after the undo. `late`: the statements they superseded. `taken`: texts that cannot be shown.
    """
    used, shown = set(taken), []
    for memory in undone:
        groups: dict[object, list[Memory]] = {}
        for statement in sorted(late, key=lambda s: (s.said_at, s.id), reverse=True):
            own = statement.superseded_by == memory.id
            if own and (memory.state != "ACTIVE" or statement.said_at > memory.said_at):
                group = _single_slot(statement) or text_hash(statement.text)
                groups.setdefault(group, []).append(statement)
        for slot, (newest, *older) in groups.items():
            key = (newest.lane_id, text_hash(newest.text))
            replaces = memory.state == "ACTIVE" and memory.slot == slot
            fixed = replaces and (memory.immutable or memory.protection is not None)
            if key not in used and not fixed:
                used.add(key)
                shown.append(Succession(newest, older, memory if replaces else None))
    return shown


def _single_slot(memory: Memory) -> str | None:
    """The slot of a memory, if it has one value at a time."""
    single = slots.single_valued(memory.slot, memory.cardinality)
    return memory.slot if single else None


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
