"""Setup of a child before exec: signal at its parent's end, user, limits.

It is a program and not a `preexec_fn`, which runs Python between fork and exec and may deadlock in
a process with threads. exec keeps the pid, so the child's pid is the server's pid. It uses only the
standard library and runs with `-I -S`: 10 ms (measured).

    launch.py PARENT SIGNAL NICE USER PROGRAM [ARGUMENT …]

PARENT  pid whose end sends SIGNAL to the child; 0: not tied
USER    `self`, `namespace` (a user namespace where uid 1000 is us: for PostgreSQL, which refuses to
        run as root; files stay ours, so it works under a private home) or `UID:GID`
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CLONE_NEWUSER = 0x10000000  # <linux/sched.h>
NAMESPACE_ID = 1000
AUTOGROUP, AUTOGROUP_TRIES, AUTOGROUP_PAUSE_S = Path("/proc/self/autogroup"), 20, 0.05
MAX_FILES = 65_536  # Chroma opens four files for each collection; the usual limit is 1,024


def become(user: str) -> None:
    """Change the user of this process, or enter a user namespace."""
    if user == "namespace":
        _enter_namespace()
    elif user != "self":
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def _enter_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "no user namespace")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NAMESPACE_ID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{NAMESPACE_ID} {gid} 1")


def tie(parent: int, signum: int) -> None:
    """Make the kernel send `signum` to this process when `parent` ends. On Linux only.

    Call it after `become`, because a change of user cancels it.
    """
    if not parent or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:  # it has already ended
        sys.exit(f"parent {parent} is gone")


def lower_priority(nice: int) -> None:
    """Raise the nice value of this process, and of its autogroup.

    Each child has a session of its own. If the kernel groups processes by session (autogroup, see
    sched(7)), a nice value counts only among those of one session.
    """
    os.nice(nice)
    if not nice or not AUTOGROUP.exists():
        return
    for _ in range(AUTOGROUP_TRIES):
        try:
            AUTOGROUP.write_text(str(nice))
        except BlockingIOError:  # users other than root may write ten times a second, all together
            time.sleep(AUTOGROUP_PAUSE_S)  # noqa: TID251  nothing to wait on
        except OSError:
            return
        else:
            return


def inherit() -> None:
    """Restore the signal handling that Python changed, and raise the limit on open files."""
    os.umask(0o077)
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(arguments: list[str]) -> None:
    """Set up the process and exec its program."""
    parent, signum, nice, user, *program = arguments
    try:
        lower_priority(int(nice))
        inherit()
        become(user)
        tie(int(parent), int(signum))
        os.execv(program[0], program)  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot start {program[0]}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
