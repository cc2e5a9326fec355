"""The watch of an event loop: it sees a task that blocks, and no task that waits."""

from __future__ import annotations

import asyncio
import threading
import time

from structlog.testing import capture_logs

from pipeline.loop_watch import LoopWatch

LONG_S = 3_600.0


def block(until: threading.Event) -> None:
    until.wait()


async def test_a_blocked_loop_is_logged_once_with_its_task_and_stack() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), slow_s=1e-6)
    released = threading.Event()
    watch._call()

    def look_twice() -> None:
        watch._turned.clear()
        watch.look()
        watch.look()
        released.set()

    async def work() -> None:
        threading.Thread(target=look_twice).start()
        block(released)

    with capture_logs() as logs:
        await asyncio.sleep(0)
        await asyncio.create_task(work(), name="lane-7")
    [entry] = logs
    assert (entry["event"], entry["task"]) == ("loop_blocked", "lane-7")
    assert any(line.endswith(" work") for line in entry["frames"])


async def test_the_end_of_a_block_is_logged_with_its_seconds_and_its_cpu_time() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), slow_s=1e-6)
    looked = threading.Event()

    def look() -> None:
        watch._turned.clear()
        watch.look()
        looked.set()

    async def compute() -> None:
        threading.Thread(target=look).start()
        block(looked)
        began_s = time.thread_time()
        while time.thread_time() < began_s + 0.02:
            pass

    watch._call()
    await asyncio.sleep(0)
    with capture_logs() as logs:
        watch.look()
        await asyncio.create_task(compute())
        watch._turned.set()
        watch.look()
    [blocked, went_on] = logs
    assert (blocked["event"], went_on["event"]) == ("loop_blocked", "loop_went_on")
    assert 0.02 <= went_on["cpu_s"] <= went_on["for_s"]


async def test_the_time_of_a_block_belongs_to_its_task_alone() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), slow_s=1e-6)
    released = threading.Event()

    def look() -> None:
        watch.look()
        released.set()

    async def work() -> None:
        threading.Thread(target=look).start()
        block(released)

    async def rest() -> None:
        await asyncio.sleep(0)

    blocking, other = asyncio.create_task(work()), asyncio.create_task(rest())
    await asyncio.gather(blocking, other)
    assert watch.blocked_s(blocking) > 0
    assert watch.blocked_s(other) == 0


async def test_a_loop_that_makes_progress_is_not_blocked() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), slow_s=LONG_S)
    watch._call()
    await asyncio.sleep(0)
    with capture_logs() as logs:
        watch.look()
        watch.look()
    assert logs == []
    assert watch.turned()
    assert not watch.turned()


async def test_the_thread_ends_with_close() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), slow_s=0.01)
    watch.start()
    began = time.monotonic()
    watch.close()
    assert not watch._thread.is_alive() or time.monotonic() - began < 10
