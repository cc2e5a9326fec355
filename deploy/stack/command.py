"""A command to run, as a value, and a function that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class Command:
    """A program, its environment, and the signal that stops it in good order.

    `argv[0]` is an absolute path. `argv` must not contain secrets, because any user can read it in
    `ps`. `user`: see launch.py.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stop_signal: signal.Signals = signal.SIGTERM
    nice: int = 0
    user: str = "self"

    def launch(self, *, tied: bool) -> list[str]:
        """The argument list to spawn.

        `tied`: the program gets `stop_signal` when the calling thread ends. The kernel watches the
        thread, not the process, so the calling thread must live as long as the child.
        """
        parent = os.getpid() if tied else 0
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER)]
        options = [str(parent), str(int(self.stop_signal)), str(self.nice), self.user]
        return [*launcher, *options, *self.argv]


def inherited_environment() -> dict[str, str]:
    """The environment that every child inherits."""
    return dict(os.environ)  # noqa: TID251  passed on, not read


def run_to_end(
    command: Command, *, text: str = "", output: IO[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a short program with `text` as its input; it ends when this process ends."""
    return subprocess.run(
        command.launch(tied=True),
        input=text,
        env=dict(command.env),
        cwd=command.cwd,
        stdout=output or subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
