"""Memories from Mem0's API: a list, or a page with `results`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from deploy.imports.mem0 import memory_line
from deploy.stack.failure import StackError

SHAPE = 'a list of memories, or an object with "results" or "memories", each with "id" and "memory"'

# Keys of a memory that its payload in Mem0's library has by the same names.
COLUMNS = (
    *("user_id", "agent_id", "run_id", "created_at", "updated_at"),
    *("categories", "expiration_date", "immutable"),
)


def platform_lines(file: Path, user: str | None) -> Iterator[dict[str, Any]]:
    """A line of type memory for each memory. `user`: the user_id of those without any owner.

    Errors: StackError if the file has another form.
    """
    try:
        content = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise StackError(f"{file} cannot be read as JSON: {error}") from error
    rows = content
    if isinstance(content, dict):
        rows = content.get("results", content.get("memories"))
    if not isinstance(rows, list) or not rows:
        raise StackError(f"{file} should be {SHAPE}.")
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not row.get("id") or not row.get("memory"):
            raise StackError(f"{file}, memory {place}: the file should be {SHAPE}.")
        yield _line(row, user)


def _line(row: dict[str, Any], user: str | None) -> dict[str, Any]:
    """The line of a memory, with its owners and times as in a payload of Mem0's library."""
    owned = any(row.get(name) for name in ("user_id", "agent_id", "app_id", "run_id"))
    payload = {name: row[name] for name in COLUMNS if row.get(name)} | {"data": row["memory"]}
    if not owned and user:
        payload["user_id"] = user
    line = memory_line(str(row["id"]), payload, (), metadata=row.get("metadata") or {})
    return line | ({"app_id": str(row["app_id"])} if row.get("app_id") else {})
