"""Supervision of one child: restarts with growing delays, and a kill if it does not stop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.stack.child import HOPELESS_ENDS, LONGEST_DELAY_S, STEADY_S, Backoff, Child
from deploy.stack.command import Command, inherited_environment
from deploy.stack.failure import StackError
from deploy.stack.identity import identify
from deploy.stack.journal import Journal, ProcessState
from deploy.stack.layout import Layout
from deploy.stack.programs import Program
from pipeline.settings import Settings

STUBBORN = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
while True:
    signal.pause()
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.create()
    return made


@pytest.fixture
def journal(layout: Layout) -> Journal:
    return Journal(layout, Settings())


def program(*arguments: str, ready: Callable[[], bool] = lambda: False) -> Program:
    command = Command((sys.executable, *arguments), inherited_environment(), Path.cwd())
    return Program("worker-1", lambda: command, ready)


def unexpected(error: StackError) -> None:
    raise error


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff()
    assert [backoff.after(0) for _ in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_steady_life_starts_from_the_beginning() -> None:
    backoff = Backoff()
    for _ in range(9):
        backoff.after(STEADY_S - 0.1)
    assert backoff.after(STEADY_S - 0.1) == LONGEST_DELAY_S
    assert [backoff.after(STEADY_S), backoff.after(0)] == [0.2, 0.4]


@pytest.mark.parametrize("answers", [True, False], ids=["healthy", "never ready"])
async def test_a_child_that_ignores_its_stop_signal_is_killed(
    layout: Layout, journal: Journal, answers: bool
) -> None:
    started = layout.root / "started"
    stubborn = program("-c", STUBBORN, str(started), ready=lambda: answers and started.exists())
    child = Child(stubborn, layout=layout, journal=journal, give_up=unexpected, grace_s=0.1)
    child.start()
    async with asyncio.timeout(30):
        while not started.exists():  # noqa: ASYNC110  another process makes it
            await asyncio.sleep(0.01)
        if answers:
            await child.healthy.wait()
        pid = int(layout.pid_file("worker-1").read_text())
        await child.stop()
    assert identify(pid) is None
    assert not layout.pid_file("worker-1").exists()
    assert journal.state.processes["worker-1"].state is ProcessState.STOPPED


async def test_a_child_that_never_gets_healthy_is_given_up(
    layout: Layout, journal: Journal
) -> None:
    given_up: asyncio.Future[StackError] = asyncio.get_running_loop().create_future()
    hopeless = program("-c", "print('no such table'); raise SystemExit(1)")
    child = Child(hopeless, layout=layout, journal=journal, give_up=given_up.set_result)
    child.start()
    async with asyncio.timeout(60):
        error = await given_up
        await child.stop()
    assert str(error) == f"worker-1 does not stay up: it ended {HOPELESS_ENDS} times"
    assert error.process == "worker-1"
    assert layout.log_tail("worker-1") == ["no such table"] * HOPELESS_ENDS


async def test_what_cannot_be_prepared_is_given_up_with_the_reason(
    layout: Layout, journal: Journal
) -> None:
    given_up: asyncio.Future[StackError] = asyncio.get_running_loop().create_future()

    def prepare() -> Command:
        raise StackError("no binary for this machine")

    broken = Program("redis", prepare, lambda: False)
    child = Child(broken, layout=layout, journal=journal, give_up=given_up.set_result)
    child.start()
    async with asyncio.timeout(30):
        assert str(await given_up) == "no binary for this machine"
        await child.stop()
