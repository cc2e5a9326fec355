"""Log lines for people: the JSON lines of all processes, merged by time, one short line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from deploy.stack.layout import Layout

# Fields with a place of their own in a line.
PLACED = ("timestamp", "level", "process", "event", "exception")


def merged(
    layout: Layout, names: Sequence[str], *, lines: int, event_id: str | None = None
) -> list[str]:
    """The last lines of these processes (default: all) in the order of their times.

    `event_id`: only lines that name this event, and all of them. Lines that are no JSON, such as
    those of PostgreSQL, are left out.
    """
    rows = sorted(_rows(layout, names, event_id), key=lambda row: str(row["timestamp"]))
    return [shown(row) for row in (rows if event_id else rows[-lines:] if lines else [])]


def _rows(layout: Layout, names: Sequence[str], event_id: str | None) -> Iterator[dict[str, Any]]:
    """The JSON lines of the logs, those that have moved to NAME.log.1 included."""
    for file in sorted(layout.logs.glob("*.log*")):
        if names and file.name.partition(".")[0] not in names:
            continue
        with file.open(errors="replace") as text:
            for line in text:
                if event_id is None or event_id in line:
                    yield from _parsed(line)


def _parsed(line: str) -> Iterator[dict[str, Any]]:
    try:
        row = json.loads(line)
    except ValueError:
        return
    if isinstance(row, dict) and "timestamp" in row and "event" in row:
        yield row


def shown(row: dict[str, Any]) -> str:
    """One line: time, level, process, event, and the other fields as name=value."""
    clock = str(row["timestamp"])[11:23]
    rest = " ".join(f"{name}={value}" for name, value in row.items() if name not in PLACED)
    level = str(row.get("level", "")).upper()
    return f"{clock} {level:<7} {row.get('process', ''):<9} {row['event']} {rest}".rstrip()
