"""The last step before a child becomes itself: tie it to its parent, choose its user, exec.

A program of its own rather than a `preexec_fn`: that one runs Python between fork and exec, which
may deadlock in a process with threads. exec keeps the pid, so the child's pid is the server's pid.
Standard library only, run with `-I -S`: 10 ms (measured).

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
from pathlib import Path

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
CLONE_NEWUSER = 0x10000000  # <linux/sched.h>
NAMESPACE_ID = 1000
MAX_FILES = 65_536  # Chroma holds four files a collection; the usual soft limit is 1,024


def become(user: str) -> None:
    """Replace this process by the command."""
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
    """Have the kernel send `signum` to this process when `parent` ends. Linux; elsewhere nothing.

    After `become`, because a change of user clears the request.
    """
    if not parent or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the request
        sys.exit(f"parent {parent} is gone")


def inherit() -> None:
    """Undo what Python changed, and lift the limit on open files."""
    os.umask(0o077)
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(arguments: list[str]) -> None:
    """Set up the process and become its program."""
    parent, signum, nice, user, *program = arguments
    try:
        os.nice(int(nice))
        inherit()
        become(user)
        tie(int(parent), int(signum))
        os.execv(program[0], program)  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot start {program[0]}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
