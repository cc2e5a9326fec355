"""The first five minutes with a running stack.

It calls the API as any chat backend does, over HTTP with the project's key.

    act 1   three chats of one user over three months: posted, followed, with receipts
    act 2   two searches, and the history of a memory that changed
    act 3   a burst of turns, kill -9 of the worker during it, and the memories afterwards
"""

from __future__ import annotations

import json
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib import resources
from itertools import zip_longest
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deploy.cli.connection import ApiConnection
from deploy.cli.context import key_in, screen
from deploy.stack import journal
from deploy.stack.failure import StackError
from deploy.stack.identity import Identity, alive, send
from deploy.stack.layout import Layout, command_line
from deploy.stack.waiting import wait_until
from pipeline.domain.events import StageName
from pipeline.settings import Settings

Json = dict[str, Any]

INTERRUPTED = 130
PIPE_COLUMNS = 100  # wide enough for the tables
# The built-in rules take a second; a slow remote model needs longer.
ENDED_WITHIN_S, BEGUN_WITHIN_S = 180.0, 30.0
PAGE_SIZE = 200
WORKER = "worker-1"
RULES = "local/rules"
# Outcomes in the receipts of the three chats with local/rules, besides DELETE.
EXPECTED = frozenset({"ADD", "UPDATE", "NOOP"})
COLOURS = {"ADD": "green", "UPDATE": "yellow", "DELETE": "red", "NOOP": "cyan"}
STATUS_COLOURS = {"SUCCEEDED": "green", "FAILED": "bold red", "RUNNING": "yellow"}
ACT_1 = (
    "Each turn is one POST: kept at once, understood later, in five stages.\n"
    "Turns that wait together share a batch. A receipt shows the outcome of each.\n"
    'Every turn carries the day it was said, so "last Friday" becomes a date.'
)
ACT_2 = "A search finds memories by meaning and by words, and the graph around them."
ACT_3 = "kill -9 in the middle of the work: nothing may be lost, nothing done twice."


def run(settings: Settings, *, kill: bool) -> int:
    """Play the demo. Returns 0, or another code after the reason is printed to stderr."""
    try:
        play(settings, kill=kill)
    except StackError as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        status, down = command_line("status"), command_line("down")
        print(f"\nInterrupted. What was accepted goes on: `{status}`, `{down}`.")
        return INTERRUPTED
    return 0


def play(settings: Settings, *, kill: bool) -> None:
    """Play all acts, with ids of this run only. Errors: StackError."""
    console = screen(PIPE_COLUMNS)
    layout, demo, run_id = Layout(settings.data_dir), story(), uuid.uuid4().hex[:6]
    user_id = f"{demo['speaker'].lower()}-{run_id}"
    with DemoApi(f"http://127.0.0.1:{settings.port}", key_in(layout.api_key)) as api:
        api.get("/v1/ping/")
        heading(console, "1  Three chats become memories", ACT_1)
        events = chats(demo, user_id, api, console)
        check_outcomes(events, settings.llm.model)
        heading(console, "2  Ask", ACT_2)
        questions(demo["questions"], user_id, events, api, console)
        if kill:
            heading(console, "3  Kill a worker", ACT_3)
            crash(demo["burst"], f"burst-{run_id}", settings, layout, api, console)
        farewell(api.url, layout, user_id, demo["questions"][0], console)


def story() -> Json:
    """All texts of the demo. A turn is what the user says, and the assistant's answer."""
    text = resources.files(__package__).joinpath("conversation.json").read_text("utf-8")
    return dict(json.loads(text))


class DemoApi(ApiConnection):
    """The calls of the demo."""

    def add(self, messages: list[dict[str, str]], **fields: str) -> Json:
        """Post one turn. `ms` in the response: the time until it was accepted."""
        began = time.perf_counter()
        answer = self.post("/v3/memories/add/", messages=messages, **fields)
        return answer | {"ms": 1000 * (time.perf_counter() - began)}

    def event(self, event_id: str) -> Json:
        """Read an event with its receipt."""
        return self.get(f"/v1/event/{event_id}/")

    def events(self, run_id: str) -> list[Json]:
        """All events of a run, of all users."""
        return list(self.get("/v1/events/", run_id=run_id, page_size=PAGE_SIZE)["results"])


# Act 1


def chats(demo: Json, user_id: str, api: DemoApi, console: Console) -> list[Json]:
    """Post the sessions one after the other, and show their receipts. Returns the events."""
    events: list[Json] = []
    for number, session in enumerate(demo["sessions"], start=1):
        title = f"Session {number}, {day(session['at'])}: {session['title']}"
        console.print(Text(title, style="bold"))
        ids = []
        for place, (text, reply) in enumerate(session["turns"], start=1):
            user = {"role": "user", "content": text, "name": demo["speaker"]}
            messages = [user, {"role": "assistant", "content": reply}]
            accepted = api.add(messages, timestamp=session["at"], user_id=user_id)
            ids.append(accepted["event_id"])
            line = f"  {place}  {demo['speaker']}: {text}\n     -> {accepted['status']}"
            console.print(Text(f"{line}  event {accepted['event_id']}"))
        ended = watched(ids, api, console)
        console.print(receipts(ended), Text(cost(ended), style="dim"), "")
        events += ended
    return events


def watched(ids: Sequence[str], api: DemoApi, console: Console) -> list[Json]:
    """Show the events' progress until they have ended: live on a terminal, else once."""
    if not console.is_terminal:
        events = follow(ids, api.event, lambda _: None)
        console.print(progress(events))
        return events
    with Live(console=console) as live:
        return follow(ids, api.event, lambda events: live.update(progress(events)))


def follow(
    ids: Sequence[str],
    read: Callable[[str], Json],
    show: Callable[[list[Json]], None],
    within_s: float = ENDED_WITHIN_S,
) -> list[Json]:
    """Poll the events until all have ended. Errors: StackError if one failed, or has not ended."""
    events = {event_id: read(event_id) for event_id in ids}

    def all_ended() -> bool:
        events.update({name: read(name) for name, event in events.items() if not ended(event)})
        show(list(events.values()))
        return all(ended(event) for event in events.values())

    wait_until(all_ended, within_s)
    check_success(list(events.values()), within_s)
    return list(events.values())


def ended(event: Json) -> bool:
    """True if the event has ended."""
    return event["status"] in ("SUCCEEDED", "FAILED")


def check_success(events: Iterable[Json], within_s: float) -> None:
    """Check that all events succeeded. Errors: StackError that names one that did not."""
    for event in sorted(events, key=ended, reverse=True):
        if event["status"] == "FAILED":
            raise StackError(f"Event {event['id']} FAILED with {event['code']}: {event['error']}")
        if not ended(event):
            wait = event["waiting"]
            reason = f"it waits: {wait['code']}" if wait else f"stage {event['stage']}"
            raise StackError(
                f"Event {event['id']} is still {event['status']} after {within_s:.0f} s ({reason})."
                f" It is kept, and will end; see `{command_line('logs')}`."
            )


def check_outcomes(events: Sequence[Json], model: str) -> None:
    """Check that the receipts of the built-in rules show all outcomes, and reasons.

    A language model may decide differently. Errors: StackError.
    """
    lines = [line for event in events for line in event["results"]]
    absent = sorted(EXPECTED - {line["event"] for line in lines})
    if model == RULES and absent:
        raise StackError(f"No receipt shows {' or '.join(absent)}: local/rules should have.")
    if model == RULES and not all(line["reason"] for line in lines):
        raise StackError("A receipt line has no reason.")


def progress(events: Sequence[Json]) -> Padding:
    """One line for each event: milliseconds of finished stages, and the status."""
    stages = [stage.value for stage in StageName]
    grid = table("turn", *stages, "status", "total ms")
    for number, event in enumerate(events, start=1):
        done = {run["stage"]: f"{run['ms']:.0f}" for run in event["stages"]}
        if event["stage"] and not ended(event):
            done[event["stage"]] = "..."
        blank = "-" if ended(event) else ""
        status, wait = event["status"], event["waiting"]
        shown = f"waits: {wait['code']}" if wait and not ended(event) else status
        total = f"{event['latency']:,.0f}" if event["latency"] else ""
        style = STATUS_COLOURS.get(status, "dim")
        cells = [done.get(stage, blank) for stage in stages]
        grid.add_row(str(number), *cells, Text(shown, style=style), total)
    return Padding(grid, (1, 0, 0, 2), expand=False)


def receipts(events: Sequence[Json]) -> Padding:
    """The receipt of each turn: outcome, memory, its earlier text, and the reason of a change."""
    grid = table("turn", "outcome", "memory")
    for number, event in enumerate(events, start=1):
        for line in event["results"]:
            outcome, old = line["event"], line["old_memory"]
            text = Text(line["memory"] or "-", style="strike" if outcome == "DELETE" else "")
            if old and old != line["memory"]:
                text.append(f"\nbefore: {old}", style="dim")
            if line["reason"] and outcome != "ADD":  # the reason of an ADD adds nothing
                text.append(f"\nreason: {line['reason']}", style="dim")
            grid.add_row(str(number), Text(outcome, style=COLOURS.get(outcome, "")), text)
        if not event["results"]:
            nothing = f"nothing stored. {event['note'] or ''}".strip()
            grid.add_row(str(number), "-", Text(nothing, style="dim"))
    return Padding(grid, (1, 0, 1, 2), expand=False)


def cost(events: Sequence[Json]) -> str:
    """The models that answered, and the sum of the events' shares of the cost."""
    spent = [event["usage"] for event in events]
    models = list(dict.fromkeys(name for usage in spent for name in usage["models"]))
    calls = sum(usage["calls"] for usage in spent)
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in spent)
    prices = [usage["cost_usd"] for usage in spent if usage["cost_usd"] is not None]
    price = f", ${sum(prices):.4f}" if prices else ", price unknown" if calls else ""
    names = f"{RULES} answered, not an LLM" if models == [RULES] else ", ".join(models)
    return f"  {len(events)} turns, {calls} calls, {tokens:,} tokens{price}: {names or 'no model'}"


# Act 2


def questions(
    texts: Sequence[str], user_id: str, events: Sequence[Json], api: DemoApi, console: Console
) -> None:
    """Search for the texts, and show the history of a memory that changed."""
    relations: list[Json] = []
    rows: list[Sequence[str]]
    for text in texts:
        filters = {"user_id": user_id}
        answer = api.post("/v3/memories/search/", query=text, filters=filters, top_k=2)
        hits = answer["results"]
        rows = [(f"{hit['score']:.2f}", hit["memory"], since(hit["timestamp"])) for hit in hits]
        console.print(Text(text, style="bold"), listed(rows), "")
        relations = relations or answer["relations"][:4]
    rows = [
        (
            f"{edge['source']} --{edge['relationship']}--> {edge['target']}",
            since(edge["valid_from"]),
        )
        for edge in relations
    ]
    console.print(Text("Relations around the answers", style="bold"), listed(rows), "")
    lines = (line for event in events for line in event["results"])
    changed = next((line["id"] for line in lines if line["event"] == "UPDATE"), None)
    if changed:
        states = api.rows(f"/v1/memories/{changed}/history/")
        title = "History of a memory that changed: nothing is overwritten"
        rows = [
            (state["event"], state["new_memory"] or state["old_memory"], state["reason"] or "")
            for state in states
        ]
        console.print(Text(title, style="bold"), listed(rows))


# Act 3


def crash(
    burst: dict[str, list[str]],
    run_id: str,
    settings: Settings,
    layout: Layout,
    api: DemoApi,
    console: Console,
) -> None:
    """Post a burst, kill the worker during it, and show that each event ends exactly once.

    Errors: StackError if an event is lost, fails, or stores its memory twice.
    """
    victim = worker(layout, api.url)
    if victim is None:
        console.print("No worker of this machine's own stack to kill: this act is left out.")
        return
    turns = [
        (name, text)
        for round_ in zip_longest(*burst.values())
        for name, text in zip(burst, round_, strict=True)
        if text
    ]
    posts = [
        api.add(
            [{"role": "user", "content": text, "name": name}],
            user_id=f"{name.lower()}-{run_id}",
            run_id=run_id,
        )
        for name, text in turns
    ]
    ms = median(post["ms"] for post in posts)
    console.print(f"  {len(burst)} people post {len(posts)} turns, each kept after {ms:.1f} ms.")
    if not wait_until(lambda: states(api.events(run_id)).keys() != {"PENDING"}, BEGUN_WITHIN_S):
        logs = command_line("logs")
        raise StackError(f"No event was begun within {BEGUN_WITHIN_S:.0f} s: see `{logs}`.")
    if not send(victim, signal.SIGKILL):
        raise StackError(f"{WORKER} (pid {victim.pid}) was gone before it could be killed.")
    began = time.monotonic()
    left = counted(api.events(run_id))
    console.print(f"  kill -9 {victim.pid} ({WORKER}), which leaves {left}", style="bold")
    with console.status("waiting for the dead worker's events"):
        wait_until(lambda: all(map(ended, api.events(run_id))), ENDED_WITHIN_S)
    events = api.events(run_id)
    check_success(events, ENDED_WITHIN_S)
    console.print(f"  all {len(events)} events have ended, {time.monotonic() - began:.1f} s later")
    compare(events, len(posts), run_id, api, console)
    notes = [
        ("supervisor", "restarts each process that dies"),
        ("lease", f"a dead worker's lanes are free within {settings.lease_s / 2:g} s"),
        (
            "sweeper",
            f"publishes their hints again, and those not taken in {settings.queued_grace_s:g} s",
        ),
        ("fence", "a worker that comes back late is refused: effects happen once"),
    ]
    console.print(listed(notes))


def worker(layout: Layout, url: str) -> Identity | None:
    """The worker to kill, if the stack at `url` started the process in its pid file.

    The start time in the supervisor's state must match too, so that a later process with the same
    pid is never killed.
    """
    state = journal.read(layout)
    note = state.processes.get(WORKER) if state and state.url == url else None
    process = note.identity() if note else None
    try:
        pid = int(layout.pid_file(WORKER).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return process if process and alive(process) and pid == process.pid else None


def compare(
    events: Sequence[Json], accepted: int, run_id: str, api: DemoApi, console: Console
) -> None:
    """Compare the stored memories with the receipts. Errors: StackError if they differ."""
    rows = api.post("/v3/memories/", filters={"run_id": run_id}, page_size=PAGE_SIZE)["results"]
    outcomes = Counter(line["event"] for event in events for line in event["results"])
    due = outcomes["ADD"] - outcomes["DELETE"]
    doubles = len(rows) - len({(row["user_id"], row["memory"]) for row in rows})
    if len(events) != accepted or len(rows) != due or doubles:
        raise StackError(
            f"{accepted} turns were accepted and {len(events)} events ended; the receipts make"
            f" {due} memories, {len(rows)} are stored, {doubles} of them twice."
        )
    console.print(
        f"\n  {accepted} accepted = {counted(events)}"
        f"\n  {due} memories by the receipts = {len(rows)} stored, none of them twice\n",
        style="bold green",
    )


def states(events: Iterable[Json]) -> Counter[str]:
    """Number of events by status."""
    return Counter(event["status"] for event in events)


def counted(events: Iterable[Json]) -> str:
    """Number of events by status: "9 RUNNING, 15 PENDING"."""
    return ", ".join(f"{count} {name}" for name, count in states(events).most_common())


# Output


def heading(console: Console, title: str, about: str) -> None:
    """Print the title of an act, and what it shows."""
    console.print("", Text(title, style="bold magenta"), Text(about, style="dim"), "", sep="\n")


def table(*columns: str) -> Table:
    """A table with a head."""
    return Table(
        *columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )


def listed(rows: Iterable[Sequence[str]]) -> Padding:
    """Rows without a head. Texts are shown as they are, without markup."""
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        grid.add_row(*map(Text, row))
    return Padding(grid, (0, 0, 0, 2), expand=False)


def since(timestamp: str | None) -> str:
    """The day from which a statement is true."""
    return f"since {day(timestamp)}" if timestamp else "-"


def day(timestamp: str) -> str:
    """The date of an ISO 8601 time: 2 March 2026."""
    at = datetime.fromisoformat(timestamp)
    return f"{at.day} {at:%B %Y}"


def farewell(url: str, layout: Layout, user_id: str, question: str, console: Console) -> None:
    """Print commands to try next."""
    body = json.dumps({"query": question, "filters": {"user_id": user_id}})
    command = (
        f"  curl -s {url}/v3/memories/search/ \\\n"
        f'    -H "Authorization: Token $(cat {layout.api_key})" \\\n'
        f"    -H 'Content-Type: application/json' -d '{body}'\n"
    )
    console.print("\nYour turn", style="bold magenta")
    console.print(command, soft_wrap=True, markup=False)
    notes = [
        (f"{url}/docs", "every route, to try in the browser"),
        ("MEMLANE_LLM__MODEL", f"a real language model: set it, then {command_line('up')}"),
        (command_line("down"), "stop everything and keep the data"),
        (command_line("reset"), "stop everything and delete every memory, those of the demo too"),
    ]
    console.print(listed(notes))
