"""The watchdog: it ends a stuck worker, but not an idle, busy or disconnected one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import cast

import pytest

from pipeline.watchdog import EXIT_CODE, Look, Suspicion, Watchdog
from workers.sweeper import Sweeper, Ticks

FINE = Look(turned=True, moved=True, full=False, backlog=5)
STARVES = replace(FINE, moved=False)
SILENT = replace(FINE, turned=False)


def verdicts(*looks: Look) -> list[str | None]:
    suspicion = Suspicion(looks=3)
    return [suspicion.after(look) for look in looks]


def test_hints_that_wait_beside_room_for_them_for_so_long_are_a_consumer_that_is_stuck() -> None:
    assert verdicts(*[STARVES] * 3) == [None, None, "nothing_taken"]


def test_a_loop_that_did_not_turn_for_so_long_is_stuck() -> None:
    assert verdicts(*[SILENT] * 3) == [None, None, "loop_silent"]


@pytest.mark.parametrize(
    "innocent",
    [
        pytest.param(FINE, id="working"),
        pytest.param(replace(STARVES, backlog=0), id="nothing-to-do"),
        pytest.param(replace(STARVES, backlog=None), id="broker-away"),
        pytest.param(replace(STARVES, full=True), id="every-stage-waits-for-a-model"),
    ],
)
def test_one_innocent_look_clears_what_was_suspected(innocent: Look) -> None:
    assert verdicts(*[innocent] * 9) == [None] * 9
    assert verdicts(STARVES, STARVES, innocent, STARVES, STARVES)[-1] is None


def test_a_process_that_was_frozen_is_not_held_to_account_for_it() -> None:
    """The first check after any pause finds no progress, the next one finds some."""
    assert verdicts(replace(SILENT, moved=False), FINE, FINE) == [None] * 3


@dataclass
class Hung:
    taken: int = 1
    done: int = 0

    def turned(self) -> bool:
        return False

    def running(self) -> str | None:
        return "lane"


def test_the_watchdog_ends_a_process_that_hangs() -> None:
    ended, codes = threading.Event(), []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    watchdog = Watchdog(Hung(), lambda: 0, most=2, stuck_s=0.06, end=end)
    watchdog.start()
    assert ended.wait(10)
    watchdog.close()
    assert codes == [EXIT_CODE]


def test_a_watchdog_that_never_started_is_closed() -> None:
    """As in a worker that gets SIGTERM while it waits for its broker."""
    watchdog = Watchdog(Hung(), lambda: 0, most=2, stuck_s=60)
    watchdog.close()
    assert watchdog._closed.is_set()


def test_a_look_compares_with_the_one_before() -> None:
    runtime = Hung()
    watchdog = Watchdog(runtime, lambda: 7, most=1, stuck_s=60)
    assert watchdog.look() == Look(turned=False, moved=True, full=True, backlog=7)
    assert not watchdog.look().moved
    runtime.done += 1
    assert watchdog.look() == Look(turned=False, moved=True, full=False, backlog=7)


class Sweeping:
    ticks = 0


def test_a_sweeper_turns_as_long_as_it_ticks() -> None:
    sweeping = Sweeping()
    ticks = Ticks(cast("Sweeper", sweeping))
    assert [ticks.turned(), ticks.turned()] == [True, False]
    sweeping.ticks += 1
    assert ticks.turned()
