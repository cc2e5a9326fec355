"""From a memory's history to the way back from one event: each rule, and what always holds."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.memories import Memory
from pipeline.domain.rollback import Place, State, Step, standing, way_back, with_free_texts
from pipeline.text.equality import text_hash
from tests.unit.domain.test_reconcile import memory

THEN = datetime(2026, 1, 1, tzinfo=UTC)
E1, E2, E3 = UUID(int=101), UUID(int=102), UUID(int=103)
PERSON = None


def state(text: str | None, by: UUID | None, *, undoes: UUID | None = None) -> State:
    return State(text, {}, None, by, 0 if by else None, undoes, THEN)


def undone(text: str | None, event_id: UUID) -> State:
    return state(text, None, undoes=event_id)


def way(event_id: UUID, *states: State) -> Step | None:
    return way_back(event_id, memory(), states)


def test_what_an_event_added_has_nothing_before_it() -> None:
    step = way(E1, state("a", E1))
    assert step is not None
    assert (step.to, step.obstacle) == (None, None)


def test_what_it_changed_twice_goes_back_to_before_the_first_time() -> None:
    step = way(E2, state("a", E1), state("b", E2), state("c", E2))
    assert step is not None
    assert (step.text, step.obstacle) == ("a", None)


@pytest.mark.parametrize(
    ("by", "named"), [(E2, f"event {E2}"), (PERSON, "a person")], ids=["an event", "a person"]
)
def test_a_later_state_is_in_the_way_and_named(by: UUID | None, named: str) -> None:
    step = way(E1, state("a", E1), state("b", by))
    assert step is not None
    assert step.obstacle is not None
    assert step.obstacle.endswith(f"was changed since by {named}.")


def test_a_state_between_two_of_the_event_is_in_the_way() -> None:
    step = way(E1, state("a", E1), state("b", E2), state("c", E1))
    assert step is not None
    assert str(E2) in str(step.obstacle)


def test_a_later_event_that_was_undone_is_no_longer_in_the_way() -> None:
    step = way(E1, state("a", E1), state("b", E2), undone("a", E2))
    assert step is not None
    assert (step.to, step.obstacle) == (None, None)


def test_an_event_that_was_undone_has_no_way_back_left() -> None:
    assert way(E1, state("a", E1), undone(None, E1)) is None
    assert way(E2, state("a", E1), state("b", E2), undone("a", E2), state("c", E3)) is None


def test_an_event_the_memory_never_met_has_no_way_back() -> None:
    assert way(E3, state("a", E1)) is None


@given(st.lists(st.sampled_from([E1, E2, E3]), min_size=1, max_size=8))
def test_undoing_all_events_backwards_leaves_nothing_standing(events: list[UUID]) -> None:
    states = [state(str(place), by) for place, by in enumerate(events)]
    while stack := standing(states):
        last = stack[-1].event_id
        assert last is not None
        step = way(last, *states)
        assert step is not None
        if step.obstacle:  # the event stands in two places: only the whole of it can be undone
            assert [s.event_id for s in stack].count(last) > 1
            return
        states.append(undone(step.text, last))
    assert way(events[0], *states) is None


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def step(number: int, now: str, to: str | None) -> Step:
    return Step(memory(now, number), state(to, E1) if to else None)


def holders(*stored: Memory) -> dict[Place, UUID]:
    return {(one.lane_id, text_hash(one.text)): one.id for one in stored}


def free(steps: list[Step], *others: Memory) -> list[bool]:
    held = holders(*others, *(one.memory for one in steps))
    return [one.obstacle is None for one in with_free_texts(steps, held)]


def test_two_memories_may_swap_their_texts() -> None:
    assert free([step(1, "a", "b"), step(2, "b", "a")]) == [True, True]


def test_a_text_that_is_given_up_by_the_same_undo_is_free() -> None:
    assert free([step(1, "a", None), step(2, "b", "a")]) == [True, True]


def test_a_text_that_another_memory_holds_is_not_free() -> None:
    assert free([step(1, "b", "a")], memory("A.", 9)) == [False]


def test_a_memory_that_cannot_go_keeps_its_text_from_the_next() -> None:
    assert free([step(1, "b", "a"), step(2, "c", "b")], memory("a", 9)) == [False, False]
    # In whatever order they come.
    assert free([step(2, "c", "b"), step(1, "b", "a")], memory("a", 9)) == [False, False]


@given(st.permutations("abcde"), st.permutations("abcdexyz"), st.sets(st.sampled_from("vwxyz")))
def test_no_two_memories_ever_hold_one_text(now: str, to: str, others: set[str]) -> None:
    steps = [step(n, text, to[n]) for n, text in enumerate(now)]
    rest = [memory(text, 50 + ord(text)) for text in others]
    checked = with_free_texts(steps, holders(*rest, *(one.memory for one in steps)))
    after = [one.memory.text if one.obstacle else one.text for one in checked]
    assert len({*after, *others}) == len(after) + len(others)
