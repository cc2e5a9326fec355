"""Undo of one event from a memory's history: every rule, and its invariants."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.memories import Memory
from pipeline.domain.rollback import (
    PastState,
    TextKey,
    UndoStep,
    effective,
    refuse_taken_texts,
    successions,
    undo_step,
)
from pipeline.text.equality import text_hash
from tests.unit.domain.consolidation.test_reconcile import memory

THEN = datetime(2026, 1, 1, tzinfo=UTC)
E1, E2, E3 = UUID(int=101), UUID(int=102), UUID(int=103)
PERSON = None


def state(text: str | None, by: UUID | None, *, undoes: UUID | None = None) -> PastState:
    at = {"said_at": THEN, "valid_from": THEN}
    return PastState(text, {}, None, by, 0 if by else None, undoes, **at, structure={}, version=0)


def undone(text: str | None, event_id: UUID) -> PastState:
    return state(text, None, undoes=event_id)


def undo(event_id: UUID, *states: PastState) -> UndoStep | None:
    return undo_step(event_id, memory(), states)


def test_undoing_an_add_retires_the_memory() -> None:
    step = undo(E1, state("a", E1))
    assert step is not None
    assert (step.to, step.obstacle) == (None, None)


def test_undoing_two_updates_of_one_event_restores_the_state_before_both() -> None:
    step = undo(E2, state("a", E1), state("b", E2), state("c", E2))
    assert step is not None
    assert (step.text, step.obstacle) == ("a", None)


@pytest.mark.parametrize(
    ("by", "named"), [(E2, f"event {E2}"), (PERSON, "a person")], ids=["an event", "a person"]
)
def test_a_later_change_is_an_obstacle_that_names_its_author(by: UUID | None, named: str) -> None:
    step = undo(E1, state("a", E1), state("b", by))
    assert step is not None
    assert step.obstacle is not None
    assert step.obstacle.endswith(f"was changed since by {named}.")


def test_a_change_between_two_of_the_event_is_an_obstacle() -> None:
    step = undo(E1, state("a", E1), state("b", E2), state("c", E1))
    assert step is not None
    assert str(E2) in str(step.obstacle)


def test_a_later_event_that_was_undone_is_no_obstacle() -> None:
    step = undo(E1, state("a", E1), state("b", E2), undone("a", E2))
    assert step is not None
    assert (step.to, step.obstacle) == (None, None)


def test_an_undo_of_another_memorys_event_is_a_state_of_the_memorys_own_event() -> None:
    shown = (state(None, E1), undone("a", E3))
    step = undo(E2, *shown, state("b", E2))
    assert step is not None
    assert (step.text, step.obstacle) == ("a", None)
    step = undo(E1, *shown)
    assert step is not None
    assert (step.to, step.obstacle) == (None, None)


def late(n: int, text: str, **values: Any) -> Memory:
    """A statement of day n that memory 1 has superseded."""
    said_at = THEN + timedelta(days=n)
    row = memory(text, n, said_at=said_at, state="RETIRED", **values)
    return replace(row, superseded_by=UUID(int=1))


def test_a_late_statement_is_shown_once_and_never_beside_its_text() -> None:
    gone = memory(number=1, state="RETIRED", said_at=THEN)
    rows = [late(2, "a"), late(3, "a"), late(4, "b")]
    key = (gone.lane_id, text_hash("b"))
    [shown] = successions([gone], rows, {key})
    assert (shown.shown, list(shown.older), shown.replaced) == (rows[1], [rows[0]], None)
    back = replace(gone, state="ACTIVE", said_at=THEN + timedelta(days=2))
    assert [s.shown.id.int for s in successions([back], rows, ())] == [4, 3]


def test_a_slot_of_several_values_shows_each_late_statement() -> None:
    gone = memory(number=1, state="RETIRED", said_at=THEN)
    for attribute, days in (("hobbies", [3, 2]), ("residence", [3])):
        about = {"subject": "maya", "attribute": attribute}
        rows = [late(2, "a", **about), late(3, "b", **about)]
        assert [s.shown.id.int for s in successions([gone], rows, ())] == days


def test_an_undone_event_has_no_undo_step() -> None:
    assert undo(E1, state("a", E1), undone(None, E1)) is None
    assert undo(E2, state("a", E1), state("b", E2), undone("a", E2), state("c", E3)) is None


def test_an_event_that_did_not_change_the_memory_has_no_undo_step() -> None:
    assert undo(E3, state("a", E1)) is None


@given(st.lists(st.sampled_from([E1, E2, E3]), min_size=1, max_size=8))
def test_undoing_all_events_in_reverse_leaves_no_effective_state(events: list[UUID]) -> None:
    states = [state(str(place), by) for place, by in enumerate(events)]
    while stack := effective(states):
        last = stack[-1].event_id
        assert last is not None
        step = undo(last, *states)
        assert step is not None
        if step.obstacle:  # the event has several changes, not adjacent: undo needs all of them
            assert [s.event_id for s in stack].count(last) > 1
            return
        states.append(undone(step.text, last))
    assert undo(events[0], *states) is None


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def step(number: int, now: str, to: str | None) -> UndoStep:
    return UndoStep(memory(now, number), state(to, E1) if to else None)


def holders(*stored: Memory) -> dict[TextKey, UUID]:
    return {(memory.lane_id, text_hash(memory.text)): memory.id for memory in stored}


def free(steps: list[UndoStep], *others: Memory) -> list[bool]:
    taken = holders(*others, *(step.memory for step in steps))
    return [step.obstacle is None for step in refuse_taken_texts(steps, taken)]


def test_two_memories_may_swap_their_texts() -> None:
    assert free([step(1, "a", "b"), step(2, "b", "a")]) == [True, True]


def test_a_text_released_by_the_same_undo_is_free() -> None:
    assert free([step(1, "a", None), step(2, "b", "a")]) == [True, True]


def test_a_text_of_another_memory_is_not_free() -> None:
    assert free([step(1, "b", "a")], memory("A.", 9)) == [False]


def test_a_refused_step_keeps_its_text_taken() -> None:
    assert free([step(1, "b", "a"), step(2, "c", "b")], memory("a", 9)) == [False, False]
    # The order of the steps does not matter.
    assert free([step(2, "c", "b"), step(1, "b", "a")], memory("a", 9)) == [False, False]


@given(st.permutations("abcde"), st.permutations("abcdexyz"), st.sets(st.sampled_from("vwxyz")))
def test_no_two_memories_have_one_text_after_an_undo(now: str, to: str, others: set[str]) -> None:
    steps = [step(n, text, to[n]) for n, text in enumerate(now)]
    rest = [memory(text, 50 + ord(text)) for text in others]
    checked = refuse_taken_texts(steps, holders(*rest, *(step.memory for step in steps)))
    after = [step.memory.text if step.obstacle else step.text for step in checked]
    assert len({*after, *others}) == len(after) + len(others)
