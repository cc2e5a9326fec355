"""Few compute at a time, the least busy first, and nobody holds a place while he waits far away."""

from __future__ import annotations

import asyncio

from pipeline.turns import Turns, aside


async def computing(turns: Turns, rank: int, began: list[int], go: asyncio.Event) -> None:
    async with turns.take(rank):
        began.append(rank)
        await go.wait()


async def begin(turns: Turns, *ranks: int) -> tuple[list[asyncio.Task[None]], list[int]]:
    """One task a rank, in this order, and the ranks as they get a place; places are kept."""
    began: list[int] = []
    tasks = [asyncio.create_task(computing(turns, r, began, asyncio.Event())) for r in ranks]
    await asyncio.sleep(0)
    return tasks, began


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_least_busy_who_waits_is_next_and_among_equals_the_first() -> None:
    tasks, began = await begin(Turns(1), 3, 2, 0, 2, 1)
    order = [tasks[0], tasks[2], tasks[4], tasks[1], tasks[3]]
    for task in order:
        await end(task)
    assert began == [3, 0, 1, 2, 2]


async def test_no_more_compute_than_there_are_places() -> None:
    tasks, began = await begin(Turns(2), 0, 0, 0)
    assert len(began) == 2
    await end(*tasks)


async def test_who_steps_aside_lets_another_in_and_comes_back_in_turn() -> None:
    turns, far, said = Turns(1), asyncio.Event(), list[str]()

    async def asks_a_model() -> None:
        async with turns.take(0):
            async with aside():
                await far.wait()
            said.append("back")

    asking = asyncio.create_task(asks_a_model())
    tasks, began = await begin(turns, 1)
    assert began == [1]
    far.set()
    await asyncio.sleep(0)
    assert said == []  # the place is taken
    await end(*tasks)
    await asking
    assert said == ["back"]


async def test_who_is_cancelled_while_he_waits_leaves_every_place_to_the_others() -> None:
    turns = Turns(1)
    tasks, began = await begin(turns, 0, 0, 0)
    await end(tasks[1])
    await end(tasks[0])
    assert len(began) == 2
    await end(tasks[2])
    async with asyncio.timeout(5), turns.take(0):
        pass


async def test_without_a_turn_stepping_aside_changes_nothing() -> None:
    async with aside():
        pass
