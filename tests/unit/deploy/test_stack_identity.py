"""Process identity: a pid that the system has given to another process is never signalled."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.stack.identity import Identity, alive, identify, rss_mb, send, wait_gone
from deploy.stack.journal import ProcessNote, State
from deploy.stack.postgres import NO_SUCH_PID, disarm_stale_lock
from deploy.stack.supervisor import end_leftovers


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def who(process: subprocess.Popen[bytes]) -> Identity:
    identity = identify(process.pid)
    assert identity is not None
    return identity


def test_a_running_process_is_itself() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert alive(me)
    assert (rss_mb(os.getpid()) or 0) > 1


def test_a_dead_process_has_no_identity_even_before_it_is_reaped(
    stranger: subprocess.Popen[bytes],
) -> None:
    noted = who(stranger)
    stranger.kill()
    assert wait_gone([noted], timeout_s=10) == []
    assert identify(stranger.pid) is None
    assert not send(noted, signal.SIGTERM)


def test_a_later_user_of_the_pid_is_not_signalled(stranger: subprocess.Popen[bytes]) -> None:
    noted = Identity(stranger.pid, started="long ago")
    assert not alive(noted)
    assert not send(noted, signal.SIGKILL)
    assert stranger.poll() is None


def test_waiting_for_one_that_stays_ends_in_time(stranger: subprocess.Popen[bytes]) -> None:
    assert wait_gone([who(stranger)], timeout_s=0.05) == [who(stranger)]


def state_with(note: ProcessNote) -> State:
    no_process = ProcessNote()
    return State(supervisor=no_process, url="", llm="", embedder="", processes={"api": note})


def test_leftovers_are_ended(stranger: subprocess.Popen[bytes]) -> None:
    note = ProcessNote(pid=stranger.pid, started=who(stranger).started)
    assert list(end_leftovers(state_with(note))) == ["api"]
    assert stranger.wait(10) == -signal.SIGTERM


def test_a_stranger_with_a_leftovers_pid_is_left_alone(stranger: subprocess.Popen[bytes]) -> None:
    note = ProcessNote(pid=stranger.pid, started="long ago")
    assert end_leftovers(state_with(note)) == {}
    assert stranger.poll() is None


def test_a_stranger_with_the_postmasters_pid_does_not_stop_postgres(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{stranger.pid}\n/data\n1700000000\n")
    disarm_stale_lock(tmp_path)
    assert lock.read_text() == f"{NO_SUCH_PID}\n/data\n1700000000\n"


@pytest.mark.parametrize("text", [None, "", f"{NO_SUCH_PID}\n/data\n"])
def test_a_lock_postgres_judges_rightly_is_not_touched(tmp_path: Path, text: str | None) -> None:
    lock = tmp_path / "postmaster.pid"
    if text is not None:
        lock.write_text(text)
    disarm_stale_lock(tmp_path)
    assert (lock.read_text() if lock.exists() else None) == text
