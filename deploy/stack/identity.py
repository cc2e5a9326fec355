"""Identity of processes: pids are reused, but a pid with its start time is unique.

Every signal to a process that is not our own child goes through `send`, so an outdated pid file can
never end an unrelated process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.stack.waiting import wait_until


@dataclass(frozen=True)
class Identity:
    """One process. `started` distinguishes it from later processes with the same pid."""

    pid: int
    started: str


def identify(pid: int) -> Identity | None:
    """The process with this pid; None if there is none, or only a zombie."""
    started = _started_linux(pid) if sys.platform == "linux" else _started_ps(pid)
    return Identity(pid, started) if started else None


def _started_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name may contain spaces and brackets: count fields from the last bracket.
    fields = stat.rpartition(")")[2].split()
    # Start times count from boot, so the boot's id is part of the identity.
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return None if fields[0] in "ZX" else f"{boot_id}:{fields[19]}"


def _started_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    status, _, started = answer.stdout.strip().partition(" ")
    return None if status.startswith("Z") else started.strip() or None


def alive(who: Identity) -> bool:
    """True if this very process runs."""
    return identify(who.pid) == who


def send(who: Identity, signum: signal.Signals) -> bool:
    """Signal this very process, never a later one with its pid. False if it has ended."""
    try:
        if not hasattr(os, "pidfd_open"):
            return _send_plain(who, signum)
        # Open the handle before the identity is checked, so that the pid cannot change in between.
        handle = os.pidfd_open(who.pid)
        try:
            if not alive(who):
                return False
            signal.pidfd_send_signal(handle, signum)
        finally:
            os.close(handle)
    except ProcessLookupError:
        return False
    return True


def _send_plain(who: Identity, signum: signal.Signals) -> bool:
    if not alive(who):
        return False
    os.kill(who.pid, signum)
    return True


def wait_gone(who: Iterable[Identity], timeout_s: float) -> list[Identity]:
    """Wait until all have ended. Returns those that still run after `timeout_s` seconds."""
    left = list(who)
    wait_until(lambda: not any(map(alive, left)), timeout_s)
    return [identity for identity in left if alive(identity)]


def working_in(folder: Path, program: str) -> list[Identity]:
    """Processes of this program with the working directory `folder`. Linux only; elsewhere none."""
    identities = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fits = (entry / "cwd").readlink() == folder
            fits = fits and (entry / "exe").readlink().name.startswith(program)
        except OSError:
            continue
        if fits and (who := identify(int(entry.name))):
            identities.append(who)
    return identities


def rss_mb(pid: int) -> float | None:
    """Resident memory of one process in MB (2**20 bytes), without its children."""
    answer = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(answer.stdout) / 1024 if answer.stdout.strip() else None
