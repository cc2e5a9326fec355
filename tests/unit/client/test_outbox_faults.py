"""The outbox after a fork, after its folder was moved, and on a disk that fails."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import multiprocessing
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from memlane_client import AsyncMemlane, Memlane
from memlane_client.outbox.journal import GRACE_S, End, Entry, Journal, Tail, encoded
from memlane_client.outbox.segments import ADDS, SegmentWriter, segment_path
from memlane_client.outbox.sender import Sender

from tests.unit.client.test_outbox import FakeApi, Simulation, add, refused

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


def texts(entries: Iterable[Entry]) -> list[str]:
    return [entry.add.body["messages"][0]["content"] for entry in entries]


# ── forks ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def killed_parent(run: Callable[[Callable[[], None]], object]) -> Iterator[None]:
    """Run `run(fork)` in a process that is killed after `fork()`. Its child lives, and is idle."""
    lives, end_of_life = os.pipe()
    forked, has_forked = os.pipe()

    def fork() -> None:
        if os.fork():
            os.read(lives, 1)  # until it is killed
        os.close(end_of_life)
        os.write(has_forked, b"x")
        os.read(lives, 1)  # until the test closes the other end
        os._exit(0)

    parent = FORK.Process(target=run, args=(fork,), daemon=True)
    parent.start()
    os.close(has_forked)
    try:
        assert os.read(forked, 1)
        parent.kill()
        parent.join()
        yield
    finally:
        for file in (lives, end_of_life, forked):
            os.close(file)


def is_free(path: Path) -> bool:
    """Tell if no process has the lock of the file."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_child_does_not_keep_the_append_lock_of_a_killed_parent(tmp_path: Path) -> None:
    def run(fork: Callable[[], None]) -> None:
        with SegmentWriter(tmp_path, 1_000_000, 1_000_000).locked():
            fork()

    with killed_parent(run):
        assert is_free(tmp_path / "append.lock")


def add_one(folder: Path, api: FakeApi) -> Memlane:
    memlane = api.client(folder)
    assert memlane.add("one", user_id="maya").event_id(timeout=60)
    return memlane


def add_one_async(folder: Path, api: FakeApi) -> AsyncMemlane:
    memlane = AsyncMemlane("key", outbox=folder, async_transport=httpx.MockTransport(api))

    async def run() -> str:
        ticket = await memlane.add("one", user_id="maya")
        return await ticket.event_id(timeout=60)

    with asyncio.Runner() as runner:
        assert runner.run(run())
    return memlane


@pytest.mark.parametrize("added", [add_one, add_one_async])
def test_after_its_parent_was_killed_a_child_keeps_no_other_process_from_sending(
    api: FakeApi, tmp_path: Path, added: Callable[[Path, FakeApi], object]
) -> None:
    def run(fork: Callable[[], None]) -> None:
        memlane = added(tmp_path, api)
        fork()
        del memlane

    with killed_parent(run):
        journal = Journal(tmp_path)
        assert journal.become_sender()
        journal.resign()


def test_a_forked_child_gets_the_events_of_its_adds(api: FakeApi, tmp_path: Path) -> None:
    with add_one(tmp_path, api) as memlane:

        def run() -> None:
            assert memlane.add("two", user_id="maya").event_id(timeout=20) == "event-1"

        child = FORK.Process(target=run, daemon=True)
        child.start()
        child.join(60)
        assert child.exitcode == 0
    assert api.accepted["maya"] == ["one", "two"]


def test_a_forked_process_takes_a_lock_of_its_own(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, 1_000_000, 1_000_000)
    writer.append("a", encoded({"a": 1}))
    entered, leave = FORK.Event(), FORK.Event()

    def hold() -> None:
        with writer.locked():
            entered.set()
            leave.wait(60)

    child = FORK.Process(target=hold, daemon=True)
    child.start()
    assert entered.wait(60)
    assert writer._lock is not None
    assert not writer._lock.try_lock()
    waiter = threading.Thread(target=writer.append, args=("b", encoded({"b": 2})), daemon=True)
    waiter.start()
    leave.set()
    waiter.join(60)
    child.join(60)
    assert Tail(segment_path(tmp_path, 1, ADDS)).read() == [{"a": 1}, {"b": 2}]


def test_a_child_forked_during_an_append_of_another_thread_appends_after_it(
    tmp_path: Path,
) -> None:
    writer = SegmentWriter(tmp_path, 1_000_000, 1_000_000)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with writer.locked():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert entered.wait(60)
    child = FORK.Process(target=writer.append, args=("a", encoded({"a": 1})), daemon=True)
    child.start()
    leave.set()
    thread.join(60)
    child.join(20)
    child.kill()
    assert child.exitcode == 0
    assert Tail(segment_path(tmp_path, 1, ADDS)).read() == [{"a": 1}]


# ── folders ──────────────────────────────────────────────────────────────────────────────────────


def rename(folder: Path) -> Path:
    return folder.rename(folder.with_name("elsewhere"))


def delete(folder: Path) -> None:
    shutil.rmtree(rename(folder))  # at once for the sender, which makes files in it


moved = pytest.mark.parametrize("move", [rename, delete])


@moved
def test_an_append_after_the_folder_was_moved_is_kept_at_its_path(
    tmp_path: Path, move: Callable[[Path], object]
) -> None:
    journal = Journal(tmp_path / "o", segment_bytes=500)
    for number in range(9):
        journal.append(add(str(number)))
    move(tmp_path / "o")
    journal.append(add("9"))
    assert texts(Journal(tmp_path / "o").new_entries()) == list("0123456789")


def test_an_append_while_the_folder_is_moved_is_kept_at_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "o")
    journal.append(add("one"))
    sync = os.fdatasync

    def move_and_sync(file: int) -> None:
        monkeypatch.setattr(os, "fdatasync", sync)
        rename(tmp_path / "o")
        sync(file)

    monkeypatch.setattr(os, "fdatasync", move_and_sync)
    journal.append(add("two"))
    stored = texts(Journal(tmp_path / "o").new_entries())
    assert list(dict.fromkeys(stored)) == ["one", "two"]


def test_a_folder_that_cannot_be_made_again_is_an_error_of_the_append(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "o")
    journal.append(add("one"))
    rename(tmp_path / "o")
    (tmp_path / "o").write_text("a file")
    with pytest.raises(OSError, match=str(tmp_path / "o")):
        journal.append(add("two"))
    (tmp_path / "o").unlink()
    journal.append(add("three"))
    assert texts(Journal(tmp_path / "o").new_entries()) == ["one", "three"]


@moved
async def test_a_sender_that_cannot_make_the_folder_again_tries_once_more(
    api: FakeApi, tmp_path: Path, move: Callable[[Path], object]
) -> None:
    run = Simulation(api, tmp_path / "o")
    run.journal.append(add("one"))
    api.answer = refused
    async with api.connect() as http:
        sender = Sender(run.journal, http, run.ends.append, clock=lambda: run.now)
        await sender.step()
        move(tmp_path / "o")
        (tmp_path / "o").write_text("a file")
        for _ in range(2):
            with pytest.raises(OSError, match=str(tmp_path / "o")):
                await sender.step()
        (tmp_path / "o").unlink()
        api.answer = lambda _: None
        run.now += 60
        while (pause_s := await sender.step()) is not None:
            run.now += pause_s
    assert [end.event_id is not None for end in run.ends] == [True]


def test_a_fork_while_the_files_are_closed_closes_no_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SegmentWriter(tmp_path, 1_000_000, 1_000)
    writer.append("one", b"one\n")
    closed: list[int] = []
    close = os.close

    def close_and_fork(file: int) -> None:
        close(file)
        closed.append(file)
        if len(closed) == 1:
            writer.after_fork()

    monkeypatch.setattr(os, "close", close_and_fork)
    writer.close()
    monkeypatch.undo()
    assert len(closed) == len(set(closed)) == 2


@moved
@pytest.mark.parametrize("appended", ["before", "after"])
async def test_adds_that_the_sender_has_read_are_sent_in_order_after_the_folder_was_moved(
    api: FakeApi, tmp_path: Path, move: Callable[[Path], object], appended: str
) -> None:
    run = Simulation(api, tmp_path / "o")
    Journal(tmp_path / "o").append(add("of a process that has ended"))
    run.journal.append(add("own"))
    api.answer = refused
    async with api.connect() as http:
        sender = Sender(run.journal, http, run.ends.append, clock=lambda: run.now)
        await sender.step()
        move(tmp_path / "o")
        if appended == "before":
            run.journal.append(add("newer"))
        await sender.step()
        if appended == "after":
            run.journal.append(add("newer"))
        api.answer = lambda _: None
        run.now += 60
        while (pause_s := await sender.step()) is not None:
            run.now += pause_s
    run.journal.resign()
    assert api.accepted["maya"] == ["of a process that has ended", "own", "newer"]
    assert Journal(tmp_path / "o").pending() == []


@moved
def test_a_ticket_ends_although_the_folder_was_moved(
    api: FakeApi, tmp_path: Path, move: Callable[[Path], object]
) -> None:
    api.answer = refused
    with api.client(tmp_path / "o") as memlane:
        tickets = [memlane.add("one", user_id="maya")]
        move(tmp_path / "o")
        tickets.append(memlane.add("two", user_id="maya"))
        api.answer = lambda _: None
        assert [ticket.event_id(timeout=30) for ticket in tickets] == ["event-0", "event-1"]
    assert api.accepted["maya"] == ["one", "two"]


def test_a_sender_deletes_nothing_in_a_folder_that_took_the_place_of_its_own(
    tmp_path: Path,
) -> None:
    sender = Journal(tmp_path / "o")
    assert sender.become_sender()
    sender.append(add("a text that is longer than all the others together" * 20))
    [entry] = sender.new_entries()
    sender.finish(entry, End(entry.add.key, event_id="e"))
    rename(tmp_path / "o")
    other = Journal(tmp_path / "o")
    other.append(add("ended"))
    other.append(add("pending"))
    entry, _ = other.new_entries()
    other.finish(entry, End(entry.add.key, event_id="e"))
    for path in (tmp_path / "o").glob("*.ends"):
        os.utime(path, (0, path.stat().st_mtime - 2 * GRACE_S))
    sender.drop_finished(set())
    sender.resign()
    assert texts(other.pending()) == ["pending"]


def test_a_reader_reads_all_of_a_file_that_was_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    tail = Tail(path)
    path.write_bytes(encoded({"a": 1}))
    assert tail.read() == [{"a": 1}]
    path.write_bytes(encoded({"b": 2}) + encoded({"c": 3}))
    assert tail.read() == [{"b": 2}, {"c": 3}]
    path.unlink()
    assert tail.read() == []
    path.write_bytes(encoded({"d": 4}))
    assert tail.read() == [{"d": 4}]


# ── disks ────────────────────────────────────────────────────────────────────────────────────────


class Disk:
    """`os.fsync` and `os.fdatasync`, which fail for folders or files on request."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.failing: set[str] = set()
        self.synced: list[str] = []
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._sync(getattr(os, name)))

    def _sync(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def checked(file: int) -> None:
            is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
            kind = "folder" if is_folder else "file"
            if kind in self.failing:
                raise OSError(errno.EIO, "the disk failed")
            sync(file)
            self.synced.append(kind)

        return checked


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_no_append_is_kept_before_the_name_of_its_file_is_durable(
    tmp_path: Path, disk: Disk
) -> None:
    journal = Journal(tmp_path)
    disk.failing = {"folder"}
    for text in ("one", "two"):
        with pytest.raises(OSError, match="the disk failed"):
            journal.append(add(text))
    disk.failing = set()
    journal.append(add("three"))
    assert disk.synced == ["folder", "file"]
    assert texts(Journal(tmp_path).new_entries()) == ["three"]


def test_a_process_makes_the_name_durable_of_a_file_that_a_killed_one_created(
    tmp_path: Path, disk: Disk
) -> None:
    segment_path(tmp_path, 1, ADDS).touch()
    Journal(tmp_path).append(add("one"))
    assert disk.synced == ["folder", "file"]


def test_after_a_failed_sync_the_next_add_goes_to_another_file(tmp_path: Path, disk: Disk) -> None:
    """The disk may lack a part of the first one, and a later sync of it does not say so."""
    journal = Journal(tmp_path)
    disk.failing = {"file"}
    with pytest.raises(OSError, match="the disk failed"):
        journal.append(add("one"))
    disk.failing = set()
    journal.append(add("two"))
    journal.append(add("three"))
    newer = [entry for entry in journal.new_entries() if entry.segment > 1]
    assert texts(newer) == ["two", "three"]
    assert {entry.segment for entry in newer} == {2}


def test_a_folder_whose_name_is_not_durable_is_not_used(tmp_path: Path, disk: Disk) -> None:
    folder = tmp_path / "a" / "o"
    disk.failing = {"folder"}
    with pytest.raises(OSError, match="the disk failed"):
        Journal(folder)
    assert not folder.exists()
    disk.failing = set()
    Journal(folder)
    assert disk.synced == ["folder", "folder"]
    assert folder.stat().st_mode & 0o077 == 0


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "memlane-outbox"]
