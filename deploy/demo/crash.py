"""Act 3: kill -9 of the worker during its work, and the recovery."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from rich.console import Console

from deploy.demo import screens, tally
from deploy.demo.answers import DemoEvent
from deploy.demo.client import DemoClient
from deploy.demo.failure import DemoError
from deploy.demo.sessions import ENDED_WITHIN_S, refuse_failures
from deploy.demo.story import Story
from deploy.stack import journal
from deploy.stack.identity import Identity, alive, send
from deploy.stack.layout import Layout, command_line
from deploy.stack.waiting import wait_until

WORKER = "worker-1"
CAUGHT_WITHIN_S = 30.0
WAVE_S = 1.0


@dataclass
class Aftermath:
    """Prints what happens after the kill, each line once, with the seconds since the kill."""

    killed: Identity
    console: Console
    began_s: float = field(default_factory=time.perf_counter)
    printed: set[str] = field(default_factory=set)
    ended: int = 0
    ended_printed_s: float = 0.0

    def once(self, what: str) -> None:
        """Print a line the first time only."""
        if what not in self.printed:
            self.printed.add(what)
            self.tell(what)

    def tell(self, what: str) -> None:
        """Print a line with the seconds since the start."""
        self.console.print(screens.moment(self.seconds(), what))

    def count(self, ended: int, of: int) -> None:
        """Print the number of ended events if it has grown.

        Until all have ended, it is printed at most every WAVE_S seconds.
        """
        all_over, quiet_s = ended == of, self.seconds() - self.ended_printed_s
        if ended > self.ended and (all_over or quiet_s > WAVE_S):
            self.ended, self.ended_printed_s = ended, self.seconds()
            self.tell(f"all {of} events have ended" if all_over else f"{ended} of {of} have ended")

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.began_s


def worker(layout: Layout, url: str) -> Identity | None:
    """The worker to kill, if the stack at `url` started the process in its pid file.

    The start time in the supervisor's state must match too, so that a later process with the same
    pid is never killed.
    """
    state = journal.read(layout)
    note = state.processes.get(WORKER) if state and state.url == url else None
    who = note.identity() if note else None
    return who if who and alive(who) and _pid_in_file(layout) == who.pid else None


def _pid_in_file(layout: Layout) -> int | None:
    try:
        return int(layout.pid_file(WORKER).read_text())
    except (FileNotFoundError, ValueError):
        return None


def survive(
    story: Story,
    run_id: str,
    *,
    lease_s: float,
    grace_s: float,
    layout: Layout,
    client: DemoClient,
    console: Console,
) -> None:
    """Post a burst, kill the worker during it, and show that each event ends exactly once.

    Errors: DemoError if an event is lost, fails, or stores its memory twice.
    """
    victim = worker(layout, client.url)
    if victim is None:
        console.print("No worker of this machine's own stack to kill: this act is left out.")
        return
    posts_ms = _burst(story, run_id, client)
    console.print(
        f"  {len(story.burst)} people post {len(posts_ms)} turns, each kept after"
        f" {median(posts_ms):.1f} ms (median); then, at once:\n"
    )
    _await_work(run_id, client)
    if not send(victim, signal.SIGKILL):
        raise DemoError(f"{WORKER} (pid {victim.pid}) was gone before it could be killed.")
    aftermath = Aftermath(victim, console)
    standing = _standing(client.events(run_id))
    aftermath.tell(f"kill -9 {victim.pid} ({WORKER}), which leaves {standing}")
    with console.status("waiting for the dead worker's events"):
        events = _until_ended(run_id, aftermath, layout=layout, client=client)
    _prove(events, len(posts_ms), run_id, client=client, console=console)
    console.print(screens.explained(_why(lease_s, grace_s)))


def _burst(story: Story, run_id: str, client: DemoClient) -> list[float]:
    """Post each person's first sentence, then each one's second, and so on.

    Returns the milliseconds of each post.
    """
    rounds = max(len(person.says) for person in story.burst)
    turns = [
        (person.speaker, person.says[at])
        for at in range(rounds)
        for person in story.burst
        if at < len(person.says)
    ]
    return [
        client.add(
            [{"role": "user", "content": words, "name": speaker}],
            user_id=f"{speaker.lower()}-{run_id}",
            run_id=run_id,
        ).ms
        for speaker, words in turns
    ]


def _await_work(run_id: str, client: DemoClient) -> None:
    """Wait until an event runs or has ended."""

    def begun() -> bool:
        return any(event.status != "PENDING" for event in client.events(run_id))

    if not wait_until(begun, CAUGHT_WITHIN_S):
        logs = command_line("logs")
        raise DemoError(f"No event was begun within {CAUGHT_WITHIN_S:.0f} s: see `{logs}`.")


def _standing(events: Sequence[DemoEvent]) -> str:
    """Number of events by status: "9 RUNNING, 15 PENDING"."""
    counted = Counter(event.status for event in events)
    return ", ".join(f"{counted[name]} {name}" for name in sorted(counted, reverse=True))


def _until_ended(
    run_id: str, aftermath: Aftermath, *, layout: Layout, client: DemoClient
) -> list[DemoEvent]:
    """Show the recovery until every event has ended. Returns the events."""
    events: list[DemoEvent] = []

    def over() -> bool:
        nonlocal events
        _look_at_worker(aftermath, layout)
        events = client.events(run_id)
        ended = sum(event.ended for event in events)
        aftermath.count(ended, len(events))
        return ended == len(events)

    wait_until(over, ENDED_WITHIN_S)
    refuse_failures(events, ENDED_WITHIN_S)
    return events


def _look_at_worker(aftermath: Aftermath, layout: Layout) -> None:
    state = journal.read(layout)
    note = state.processes.get(WORKER) if state else None
    if note is None or note.pid in (None, aftermath.killed.pid):
        return
    aftermath.once(f"the supervisor has started {WORKER} again, as {note.pid}")
    if note.state is journal.ProcessState.HEALTHY:
        aftermath.once("the new worker is ready")


def _prove(
    events: Sequence[DemoEvent], count: int, run_id: str, *, client: DemoClient, console: Console
) -> None:
    """Compare the stored memories with the receipts."""
    stored = client.memories(run_id=run_id)
    due, doubles = tally.due(events), tally.doubles(stored)
    if len(events) != count or stored.count != due or doubles:
        raise DemoError(
            f"{count} turns were accepted and {len(events)} events ended; the receipts make "
            f"{due} memories, {stored.count} are stored, {doubles} of them twice."
        )
    console.print(
        f"\n  {count} accepted = {_standing(events)}"
        f"\n  {due} memories by the receipts = {stored.count} stored, none of them twice\n",
        style="bold green",
    )


def _why(lease_s: float, grace_s: float) -> tuple[tuple[str, str], ...]:
    return (
        ("supervisor", "restarts each process that dies"),
        ("lease", f"the dead renew none and leave no session: free within {lease_s / 2:g} s"),
        (
            "sweeper",
            f"repeats their hints, and those not taken within {grace_s:g} s",
        ),
        ("fence", "a worker that comes back late is refused: effects happen once"),
    )
