"""memlane export, memlane import: everything that is stored, as lines of JSON."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from deploy.cli.connection import ApiConnection
from deploy.cli.context import Agent, AppId, AsJson, Run, User, options, print_json
from deploy.imports import mem0
from deploy.imports.chats import ConversationTurn, read_turns
from deploy.imports.long_histories import shortened
from deploy.imports.platform import platform_lines
from deploy.stack.failure import StackError
from deploy.stack.layout import command_line

# Limits of one request: lines, bytes, and JSON values, of which each has at most one comma.
MOST_LINES, MOST_BYTES, MOST_VALUES = 500, 500_000, 12_000
# Events that are not waited for yet: a longer queue would only wait in the server.
MOST_OPEN = 100
# Of turns, which need a language model. The events of one user run in order anyway: a few of them
# fill the next batch while one runs.
MOST_OPEN_TURNS = 16
WAIT_S = 30
# Seconds without progress after which an import stops. An event that waits for a provider makes its
# next attempt within an hour.
STUCK_S, STUCK_WAITING_S = 600.0, 4_500.0

File = Annotated[Path, typer.Argument(help="The file, JSON lines.", metavar="FILE", dir_okay=False)]


def export(
    context: typer.Context,
    file: File,
    user: User = None,
    agent: Agent = None,
    app_id: AppId = None,
    run: Run = None,
) -> None:
    """Write everything that is stored to a file, or that of some ids: memories with their history,
    turns, graph, summaries and conflicts.

    Temporary runs are left out. An existing file is replaced once the new one is complete.
    """
    ids = {"user_id": user, "agent_id": agent, "app_id": app_id, "run_id": run}
    part = file.with_name(f"{file.name}.part")
    try:
        with options(context).connect() as api:
            last = _written(part, api.stream("/v1/transfer/export/", **ids))
        if not last:
            raise StackError(f"The export ended early; {part} is incomplete. Try again.")
        part.replace(file)
    except OSError as error:
        raise StackError(f"{file} cannot be written ({error.strerror}).") from error
    print(_numbers(last["lines"]))


def _written(part: Path, lines: Iterable[str]) -> dict[str, Any]:
    """Write the lines durably. Returns the last one, of type `end`; empty if it is missing."""
    last: dict[str, Any] = {}
    with part.open("w", encoding="utf-8") as written:
        for line in lines:
            written.write(line + "\n")
            if line.startswith('{"type":"end"'):
                last = orjson.loads(line)
        written.flush()
        os.fsync(written.fileno())
    return last


class SourceKind(StrEnum):
    """Kinds of sources that can be imported."""

    MEMLANE = "memlane"
    MEM0 = "mem0"
    PLATFORM = "mem0-platform"
    CHATS = "chats"


def import_source(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="The file; of Mem0's library the store: chroma:DIRECTORY, qdrant:DIRECTORY or a"
            " postgresql:// URL."
        ),
    ],
    kind: Annotated[
        SourceKind, typer.Option("--from", help="Kind of the source.")
    ] = SourceKind.MEMLANE,
    new_ids: Annotated[
        bool,
        typer.Option("--new-ids", help="Replace each id: for a second copy in a project."),
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(help="Mem0's history.db.", exists=True, dir_okay=False),
    ] = None,
    collection: Annotated[
        str, typer.Option(help="Collection or table of Mem0's store.")
    ] = mem0.COLLECTION,
    user: Annotated[
        str | None,
        typer.Option("--user", help="user_id of chats, and of memories without any owner."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be stored, and store nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Store the lines of an export, Mem0's memories with their history, or conversations.

    Memories keep their times, and their ids if the server has no other project; no language model
    is called. Conversations are added turn by turn, like those of a chat backend. Run it again
    after an interruption: what is stored already changes nothing. Exit code 1 if a part could not
    be stored, or if no event progresses for ten minutes, because no worker runs.
    """
    with options(context).connect() as api:
        if kind is SourceKind.CHATS:
            chats = ChatRun(api, user=user, dry_run=dry_run)
            chats.send(read_turns(Path(source)))
            run: ImportRun | ChatRun = chats
        else:
            memories = ImportRun(api, new_ids=new_ids, dry_run=dry_run)
            memories.send(_lines(kind, source, history, collection, user))
            run = memories
    if as_json:
        print_json(run.summary())
    else:
        run.show()
    raise typer.Exit(1 if run.failures else 0)


def _lines(
    kind: SourceKind, source: str, history: Path | None, collection: str, user: str | None
) -> Iterator[bytes]:
    """The lines of a source of memories."""
    match kind:
        case SourceKind.MEM0:
            store = mem0.read_store(source, history, collection)
            if store.ownerless:
                deleted = f"{store.ownerless} deleted memories are left out: the history does not"
                print(f"{deleted} say whose they were.", file=sys.stderr)
            return map(orjson.dumps, store.lines())
        case SourceKind.PLATFORM:
            return map(orjson.dumps, platform_lines(Path(source), user))
        case _:
            return checked(Path(source))


@dataclass(slots=True)
class ImportRun:
    """Sends lines in requests of limited size, and waits for their events."""

    api: ApiConnection
    new_ids: bool = False
    dry_run: bool = False
    lines: Counter[str] = field(default_factory=Counter)
    stored_before: Counter[str] = field(default_factory=Counter)
    memories: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    versions_left_out: int = 0
    _open: deque[str] = field(default_factory=deque)

    def send(self, lines: Iterable[bytes]) -> None:
        """Send all lines and wait for the end of their events."""
        for part in requests(self._shortened(lines)):
            answer = self.api.submit(
                "/v1/transfer/import/", records=part, new_ids=self.new_ids, dry_run=self.dry_run
            )
            if self.dry_run:
                self.lines.update(answer["new"])
                self.stored_before.update(answer["stored"])
                continue
            self.lines.update(record["type"] for record in part)
            self._open.extend(event["event_id"] for event in answer["events"])
            while len(self._open) > MOST_OPEN:
                self._wait()
            _progress(sum(self.lines.values()))
        while self._open:
            self._wait()

    def summary(self) -> dict[str, Any]:
        """The numbers of lines and memories, and the failures."""
        left_out = {"versions_left_out": self.versions_left_out}
        if self.dry_run:
            return {"dry_run": True, "new": self.lines, "stored": self.stored_before} | left_out
        numbers = {"lines": self.lines, "memories": self.memories}
        return numbers | {"failures": self.failures} | left_out

    def show(self) -> None:
        """Print the numbers and the failures."""
        if self.versions_left_out:
            versions = f"{self.versions_left_out:,} old versions of memories are left out"
            print(f"{versions}: one request cannot have them.", file=sys.stderr)
        if self.dry_run:
            print(f"New: {_numbers(self.lines)}")
            print(f"Stored already: {_numbers(self.stored_before)}")
            return
        print(f"Read: {_numbers(self.lines)}")
        print(f"Memories added: {self.memories['ADD']}, left as stored: {self.memories['NOOP']}")
        for failure in self.failures:
            print(f"FAILED {failure}", file=sys.stderr)

    def _shortened(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, without versions that do not fit a request, which are counted."""
        for line in lines:
            short, left_out = shortened(line)
            self.versions_left_out += left_out
            yield short

    def _wait(self) -> None:
        """Wait for the oldest event."""
        event = ended(self.api, self._open.popleft())
        if event["status"] != "SUCCEEDED":
            self.failures.append(f"{event['id']}: {event['error']}")
        self.memories.update(line["event"] for line in event["results"])


@dataclass(slots=True)
class ChatRun:
    """Adds turns in order and with low priority, so that live turns do not wait behind them."""

    api: ApiConnection
    user: str | None
    dry_run: bool = False
    turns: int = 0
    messages: int = 0
    failures: list[str] = field(default_factory=list)
    _open: deque[str] = field(default_factory=deque)

    def send(self, turns: Iterable[ConversationTurn]) -> None:
        """Add all turns, and wait for their events. Errors: StackError without a user."""
        if not self.user:
            raise StackError("Name the user of the conversations with --user.")
        for turn in turns:
            self.turns += 1
            self.messages += len(turn.messages)
            if not self.dry_run:
                self._add(turn)
        while self._open:
            self._wait()

    def summary(self) -> dict[str, Any]:
        """The numbers of turns and messages, and the failures."""
        numbers = {"turns": self.turns, "messages": self.messages, "dry_run": self.dry_run}
        return numbers | {"failures": self.failures}

    def show(self) -> None:
        """Print the numbers and the failures."""
        print(f"{self.turns:,} turns with {self.messages:,} messages")
        for failure in self.failures:
            print(f"FAILED {failure}", file=sys.stderr)

    def _add(self, turn: ConversationTurn) -> None:
        """Add a turn, and wait for the oldest event if MOST_OPEN_TURNS are open."""
        answer = self.api.submit(
            "/v3/memories/add/",
            key=turn.key,
            messages=turn.messages,
            user_id=self.user,
            timestamp=turn.said_at.isoformat() if turn.said_at else None,
            metadata={"conversation": turn.conversation},
            priority="low",
        )
        self._open.append(answer["event_id"])
        if len(self._open) >= MOST_OPEN_TURNS:
            self._wait()

    def _wait(self) -> None:
        """Wait for the oldest event."""
        event = ended(self.api, self._open.popleft())
        if event["status"] != "SUCCEEDED":
            self.failures.append(f"{event['id']}: {event['error']}")


def ended(api: ApiConnection, event_id: str) -> dict[str, Any]:
    """The event, once it has ended.

    Errors: StackError if neither it nor any other event of the project progresses for STUCK_S.
    """
    progress: object = None
    since = 0.0
    while True:
        event = api.get(f"/v1/event/{event_id}/", wait=WAIT_S)
        if event["status"] not in ("PENDING", "RUNNING"):
            return event
        totals = api.get("/v1/stats/")
        state = [event[name] for name in ("status", "stage", "waiting")]
        latest = [*state, totals["succeeded"], totals["failed"]]
        limit_s = STUCK_WAITING_S if event["waiting"] else STUCK_S
        if latest != progress:
            progress, since = latest, time.monotonic()
        elif time.monotonic() - since >= limit_s:
            raise StackError(_stuck(event, limit_s))


def _stuck(event: dict[str, Any], for_s: float) -> str:
    """The message about an event that does not progress."""
    state = event["waiting"]["code"] if event["waiting"] else event["status"]
    return (
        f"No event of the project has progressed for {for_s / 60:.0f} minutes; the import waits for"
        f" {event['id']} ({state}). Check that a worker runs (`{command_line('status')}`), and"
        " run the same command again: it continues."
    )


def checked(file: Path) -> Iterator[bytes]:
    """The lines of a file without its first and last one.

    Errors: StackError if it has another format, or is incomplete.
    """
    numbers = Counter[str]()
    expected: dict[str, int] | None = None
    place = 0
    for place, line in enumerate(_records(file), start=1):
        kind = _kind(file, place, line)
        if kind == "header":
            _require_format(file, orjson.loads(line))
        elif kind == "end":
            expected = orjson.loads(line)["lines"]
        else:
            numbers[kind] += 1
    if not place:
        raise StackError(f"{file} is empty.")
    if expected != numbers:
        raise StackError(
            f"{file} is incomplete: its last line should be of type end, with the number of lines."
        )
    return (line for line in _records(file) if _kind(file, 0, line) not in ("header", "end"))


def requests(lines: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
    """The lines in groups within the limits of a request. A larger line is a group of its own."""
    part: list[dict[str, Any]] = []
    size = values = 0
    for line in lines:
        more = line.count(b",") + line.count(b"[") + line.count(b"{")
        full = size + len(line) > MOST_BYTES or values + more > MOST_VALUES
        if part and (full or len(part) == MOST_LINES):
            yield part
            part, size, values = [], 0, 0
        part.append(orjson.loads(line))
        size, values = size + len(line), values + more
    if part:
        yield part


def _records(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            yield from (line for line in opened if line.strip())
    except OSError as error:
        raise StackError(f"{file} cannot be read ({error.strerror}).") from error


def _kind(file: Path, place: int, line: bytes) -> str:
    try:
        return str(orjson.loads(line)["type"])
    except (ValueError, KeyError, TypeError):
        raise StackError(f"{file}, line {place}: not a JSON object with a type.") from None


def _require_format(file: Path, header: dict[str, Any]) -> None:
    if (header.get("format"), header.get("version")) != ("memlane-export", 1):
        raise StackError(f"{file} is no memlane-export of version 1.")


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(numbers.items())) or "nothing"


def _progress(lines: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{lines:,} lines sent", end="", file=sys.stderr)
