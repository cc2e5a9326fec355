"""A rolling restart: replace API, workers and sweeper one by one while the others serve."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from deploy.stack.child import Child, first_of
from deploy.stack.command import Command
from deploy.stack.failure import StackError
from deploy.stack.programs import Program

HEALTHY_WITHIN_S = 120.0
# Settings of the supervisor alone: a process does not change with the number of its siblings.
COUNTS = ("MEMLANE_WORKERS", "MEMLANE_API_PROCESSES")


GiveUp = Callable[[StackError], None]


class Trial:
    """Receiver of a child's `give_up`: during the trial its reason, later an end of the stack."""

    def __init__(self, give_up: GiveUp) -> None:
        self.failed = asyncio.Event()
        self.reason = f"not healthy after {HEALTHY_WITHIN_S:.0f} s"
        self.over = False
        self._give_up = give_up

    def __call__(self, error: StackError) -> None:
        """Record the reason, or give up the stack after the trial."""
        if self.over:
            self._give_up(error)
        self.reason = str(error)
        self.failed.set()


async def roll(
    edges: dict[str, Child],
    wanted: Sequence[Program],
    child_of: Callable[[Program, GiveUp], Child],
    give_up: GiveUp,
) -> str:
    """Make `edges` the wanted programs: drain those that go, start new ones, replace changed ones.

    Returns an empty text, or the reason why it ended early. A process that does not become healthy
    is replaced by the one before, and the rest keeps running as it was.
    """
    names = {program.name for program in wanted}
    for name in [name for name in edges if name not in names]:
        await edges.pop(name).stop()
    for program in wanted:
        before = edges.get(program.name)
        if before is not None and _same(before.program.command, program.command):
            continue
        if before is not None:
            await before.stop()
        trial = Trial(give_up)
        after = edges[program.name] = child_of(program, trial)
        after.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEALTHY_WITHIN_S):
                await first_of(after.healthy.wait(), trial.failed.wait())
        trial.over = after.healthy.is_set()
        if not trial.over:
            await after.stop()
            if before is None:
                del edges[program.name]
            else:
                edges[program.name] = child_of(before.program, Trial(give_up))
                edges[program.name].start()
            return f"{program.name}: {trial.reason}"
    return ""


def _same(old: Command | None, new: Command | None) -> bool:
    """True if both commands do the same."""
    if old is None or new is None:
        return old is new
    return (old.argv, old.nice, _relevant(old)) == (new.argv, new.nice, _relevant(new))


def _relevant(command: Command) -> dict[str, str]:
    return {name: value for name, value in command.env.items() if name not in COUNTS}
