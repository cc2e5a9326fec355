"""Differences between the memories of a scope and those of its replay."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID, uuid4

from pipeline.replays.diff import Edge, Edited, Remembered, Store, difference

FIRST, SECOND = uuid4(), uuid4()


def memory(text: str, event: UUID | None = FIRST, message: int = 0, **more: Any) -> Remembered:
    given = {"metadata": {}, "expiration_date": None} | more
    return Remembered(uuid4(), text, event_id=event, message=message, **given)


def store(*memories: Remembered, edges: frozenset[Edge] = frozenset()) -> Store:
    return Store(memories, edges)


def test_what_reads_the_same_is_the_same_whatever_its_id_case_and_message() -> None:
    diff = difference(store(memory("Likes tea.")), store(memory("likes  TEA", SECOND, 3)), [])
    assert diff.same == 1
    assert (diff.changed, diff.only_live, diff.only_shadow) == ([], [], [])


def test_what_one_message_came_to_then_and_now_is_a_change() -> None:
    before, after = memory("Likes tea."), memory("Loves tea.")
    diff = difference(store(before), store(after), [])
    assert diff.changed == [(before, after)]
    assert (diff.same, diff.only_live, diff.only_shadow) == (0, [], [])


def test_memories_of_one_message_pair_up_in_order_and_the_rest_stands_alone() -> None:
    a, b = memory("a"), memory("b")
    c, d, e = memory("c"), memory("d"), memory("e")
    diff = difference(store(a, b), store(c, d, e), [])
    assert diff.changed == [(a, c), (b, d)]
    assert diff.only_shadow == [e]


def test_other_messages_and_other_events_never_pair() -> None:
    here = store(memory("a", FIRST, 0), memory("b", FIRST, 1), memory("written", None))
    there = store(memory("c", SECOND, 0), memory("d", FIRST, 2), memory("e", None))
    diff = difference(here, there, [])
    assert (diff.changed, len(diff.only_live), len(diff.only_shadow)) == ([], 3, 3)


def test_relations_come_and_go_by_what_they_say() -> None:
    tea, rum, gin = (Edge("user", "likes", drink) for drink in ("tea", "rum", "gin"))
    here = store(edges=frozenset({tea, rum}))
    diff = difference(here, store(edges=frozenset({rum, gin})), [])
    assert (diff.relations_added, diff.relations_removed) == ([gin], [tea])


def test_an_edit_is_lost_unless_the_replay_reads_as_it_was_edited() -> None:
    edit = Edited(memory("Loves tea."), deleted=False)
    dated = Edited(memory("Rum.", expiration_date=date(2027, 1, 1)), deleted=False)
    there = store(memory("loves tea"), memory("Rum."))
    assert difference(store(), there, [edit, dated]).lost == [dated]
    assert difference(store(), store(), [edit]).lost == [edit]


def test_a_delete_is_lost_where_the_replay_remembers_it_again() -> None:
    gone = Edited(memory("Likes tea."), deleted=True)
    assert difference(store(), store(memory("Likes tea.")), [gone]).lost == [gone]
    assert difference(store(), store(), [gone]).lost == []
