"""A thread that callers share: the order of their pieces, and what a search waits for."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Hashable

import pytest

from pipeline.cpu_thread import SWITCH_INTERVAL_S, SharedThread, searching, share_gil
from pipeline.fair_slots import URGENT_IN_A_ROW, FairSlots

MINE, OTHER = "my project", "another project"


class Work:
    """Pieces in the order in which they ran; the first one runs until `go_on`."""

    def __init__(self) -> None:
        self.thread = SharedThread("test")
        self.ran: list[str] = []
        self.begun, self._may_end = threading.Event(), threading.Event()

    async def pieces(self, name: str, number: int, search: Hashable = None) -> None:
        for _ in range(number):
            with searching(search):
                await self.thread.run(lambda: self._run(name))

    def go_on(self) -> None:
        self._may_end.set()

    def _run(self, name: str) -> None:
        self.ran.append(name)
        self.begun.set()
        assert self._may_end.wait(60)


@pytest.fixture
def work() -> Work:
    return Work()


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_search_waits_for_one_piece_and_all_others_take_turns(work: Work) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(work.pieces("batch", 3))
        await asyncio.to_thread(work.begun.wait, 60)
        group.create_task(work.pieces("edit", 2))
        await settled()
        group.create_task(work.pieces("question", 1, MINE))
        await settled()
        work.go_on()
    assert work.ran == ["batch", "question", "edit", "batch", "edit", "batch"]


async def test_searches_of_projects_take_turns(work: Work) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(work.pieces("batch", 2))
        await asyncio.to_thread(work.begun.wait, 60)
        for name in ("mine 1", "mine 2", "mine 3"):
            group.create_task(work.pieces(name, 1, MINE))
            await settled()
        group.create_task(work.pieces("other", 1, OTHER))
        await settled()
        work.go_on()
    assert work.ran == ["batch", "mine 1", "other", "mine 2", "mine 3", "batch"]


async def test_searches_without_a_pause_leave_some_turns_to_others(work: Work) -> None:
    # The first one after a piece of the batch does not keep its next piece waiting.
    in_a_row = URGENT_IN_A_ROW + 1
    async with asyncio.TaskGroup() as group:
        group.create_task(work.pieces("batch", 3))
        await asyncio.to_thread(work.begun.wait, 60)
        for _ in range(3 * in_a_row):
            group.create_task(work.pieces("question", 1, MINE))
        await settled()
        work.go_on()
    between = "".join("q" if name == "question" else "b" for name in work.ran).split("b")
    assert [len(each) for each in between] == [0, in_a_row, in_a_row, in_a_row]


async def test_slots_that_kept_no_other_waiting_do_not_count_as_urgent() -> None:
    slots: FairSlots[str] = FairSlots(1)
    order: list[str] = []

    async def use(group: str, *, urgent: bool) -> None:
        await slots.acquire(group, urgent=urgent)
        order.append(group)
        slots.release(group)

    for _ in range(2 * URGENT_IN_A_ROW):
        await use("alone", urgent=True)
    await slots.acquire("batch")
    async with asyncio.TaskGroup() as group:
        group.create_task(use("edit", urgent=False))
        group.create_task(use("question", urgent=True))
        await settled()
        slots.release("batch")
    assert order[-2:] == ["question", "edit"]


async def test_a_caller_that_is_cancelled_leaves_the_thread_to_the_next(work: Work) -> None:
    first = asyncio.create_task(work.pieces("first", 2))
    await asyncio.to_thread(work.begun.wait, 60)
    second = asyncio.create_task(work.pieces("second", 1))
    third = asyncio.create_task(work.pieces("third", 1))
    await settled()
    first.cancel()
    second.cancel()
    await settled()
    work.go_on()
    await asyncio.wait([first, second, third], timeout=60)
    assert (first.cancelled(), second.cancelled(), third.exception()) == (True, True, None)
    assert work.ran == ["first", "third"]


async def test_an_error_of_a_piece_is_raised_and_the_thread_goes_on(work: Work) -> None:
    work.go_on()

    def fail() -> None:
        raise KeyError("piece")

    with pytest.raises(KeyError):
        await work.thread.run(fail)
    await work.pieces("next", 1)
    assert work.ran == ["next"]


def test_the_loop_waits_less_than_by_default_for_a_thread_that_computes() -> None:
    before = sys.getswitchinterval()
    assert before > SWITCH_INTERVAL_S
    try:
        share_gil()
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    finally:
        sys.setswitchinterval(before)
