"""Is this pid still the process it was? Pids are reused; a pid with its start time is not.

Every signal the stack sends to a process that is not its own child goes through `send`, so a stale
note about a dead process can never end a stranger.
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
    """One process, for all time: `started` tells apart the users of one pid."""

    pid: int
    started: str


def identify(pid: int) -> Identity | None:
    """The process that has this pid now; None when there is none, or only its unreaped rest."""
    started = _started_linux(pid) if sys.platform == "linux" else _started_ps(pid)
    return Identity(pid, started) if started else None


def _started_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name may hold spaces and brackets: fields are counted from the last bracket.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{_boot_id()}:{fields[19]}"


def _boot_id() -> str:
    # Start times count from boot: after a reboot, the same pid and tick is another process.
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]


def _started_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    status, _, started = answer.stdout.strip().partition(" ")
    return None if status.startswith("Z") else started.strip() or None


def alive(who: Identity) -> bool:
    """True while that very process runs."""
    return identify(who.pid) == who


def send(who: Identity, signum: signal.Signals) -> bool:
    """Signal that very process; False when it is gone. Never reaches a later user of its pid."""
    try:
        if not hasattr(os, "pidfd_open"):
            return _send_plain(who, signum)
        # The handle pins the process before its identity is checked: no gap to slip through.
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
    """Wait until all of them ended; those still alive after `timeout_s` seconds."""
    left = list(who)
    wait_until(lambda: not any(map(alive, left)), timeout_s)
    return [one for one in left if alive(one)]


def working_in(folder: Path, program: str) -> list[Identity]:
    """The processes of this program whose working directory is `folder`. Linux; elsewhere none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fits = (entry / "cwd").readlink() == folder
            fits = fits and (entry / "exe").readlink().name.startswith(program)
        except OSError:
            continue
        if fits and (who := identify(int(entry.name))):
            found.append(who)
    return found


def rss_mb(pid: int) -> float | None:
    """Resident memory in MB (2**20 bytes), of this process alone."""
    answer = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(answer.stdout) / 1024 if answer.stdout.strip() else None
