"""Stores of Mem0's open-source library: the history in SQLite, and the memories in a vector store.

The stores are opened for reading only, without Mem0 and without the vector store's own package.
"""

from __future__ import annotations

import asyncio
import io
import pickle
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import orjson

from deploy.stack.failure import StackError

COLLECTION = "mem0"
# Keys of a payload with a meaning of their own; all others are metadata of the caller.
OWNERS = ("user_id", "agent_id", "run_id")
OWN_KEYS = frozenset(
    {*OWNERS, "data", "hash", "created_at", "updated_at", "actor_id", "role", "memory_type"}
    | {"text_lemmatized", "attributed_to", "expiration_date", "immutable", "categories"}
)
ROLES = ("user", "assistant", "system", "tool")
EVENTS = ("ADD", "UPDATE", "DELETE")


@dataclass(slots=True)
class Mem0Store:
    """The memories of a store by id, the changes of each, oldest first, and what is left out."""

    payloads: dict[str, dict[str, Any]]
    history: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def ownerless(self) -> int:
        """Number of deleted memories: the history does not say whose they were."""
        return len(self.history.keys() - self.payloads.keys())

    def lines(self) -> Iterator[dict[str, Any]]:
        """A line of type memory for each memory."""
        for memory_id, payload in sorted(self.payloads.items()):
            yield memory_line(memory_id, payload, self.history.get(memory_id, ()))


def read_store(store: str, history: Path | None, collection: str = COLLECTION) -> Mem0Store:
    """Read a store. `store`: `chroma:DIRECTORY`, `qdrant:DIRECTORY`, or a URL of PostgreSQL.

    Errors: StackError if it cannot be read.
    """
    kind, _, place = store.partition(":")
    try:
        match kind:
            case "chroma":
                payloads = _chroma(Path(place), collection)
            case "qdrant":
                payloads = _qdrant(Path(place), collection)
            case "postgresql":
                payloads = asyncio.run(_pgvector(store, collection))  # noqa: TID251  a command
            case _:
                raise StackError(
                    "Name the store as chroma:DIRECTORY, qdrant:DIRECTORY or a postgresql:// URL."
                )
        return Mem0Store(payloads, {} if history is None else read_history(history))
    except (sqlite3.Error, OSError, asyncpg.PostgresError, pickle.UnpicklingError) as error:
        raise StackError(f"The store cannot be read: {error}") from error


def read_history(path: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """The changes of each memory, oldest first."""
    query = "SELECT * FROM history ORDER BY coalesce(updated_at, created_at), rowid"
    changes = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in _rows(path, query):
        if row["event"] in EVENTS:
            changes[row["memory_id"]].append(row)
    return changes


def memory_line(
    memory_id: str,
    payload: Mapping[str, Any],
    changes: Sequence[Mapping[str, Any]],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The line of a memory with its history; without changes, the history has its current text.

    `metadata`: None for the keys of the payload that have no meaning of their own.
    """
    key = _uuid(memory_id)
    created = moment(payload.get("created_at")) or moment(payload.get("updated_at"))
    if created is None:
        created = _time(changes[0]) if changes else datetime.fromtimestamp(0, UTC)
    updated = moment(payload.get("updated_at")) or created
    state = _state(payload, created, updated)
    if metadata is not None:
        state["metadata"] = dict(metadata)
    text = state["text"]
    history = [
        _entry(version, change, state["metadata"])
        for version, change in enumerate(changes or [_change("ADD", None, text, created)], start=1)
    ]
    if (last := history[-1]["new_text"]) != text:  # the history does not have it
        history.append(_entry(len(history) + 1, _change("UPDATE", last, text, updated), {}))
    past = [
        state
        | {
            "id": str(uuid5(key, f"state:{entry['version']}")),
            "text": entry["new_text"],
            "version": entry["version"],
            "said_at": entry["created_at"],
            "valid_from": entry["created_at"],
            "updated_at": entry["created_at"],
            "stored_at": entry["created_at"],
            "replaced_at": later["created_at"],
        }
        for entry, later in pairwise(history)
        if entry.get("new_text")
    ]
    owners = {name: str(payload[name]) for name in OWNERS if payload.get(name)}
    own = {"type": "memory", "id": str(key), "version": len(history)}
    return own | owners | state | {"version": len(history), "history": history, "past_states": past}


def moment(value: object) -> datetime | None:
    """A time in ISO format, in UTC if it names no zone; None if it is none."""
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _state(payload: Mapping[str, Any], created: datetime, updated: datetime) -> dict[str, Any]:
    """The current state of a memory."""
    role = payload.get("role") or payload.get("attributed_to")
    metadata = {name: value for name, value in payload.items() if name not in OWN_KEYS}
    state: dict[str, Any] = {
        "text": str(payload.get("data") or payload.get("memory") or ""),
        "metadata": metadata,
        "attributed_to": role if role in ROLES else "user",
        "said_at": updated.isoformat(),
        "valid_from": updated.isoformat(),
        "created_at": created.isoformat(),
        "updated_at": updated.isoformat(),
        "stored_at": updated.isoformat(),
        "categories": list(payload.get("categories") or ()),
        "immutable": bool(payload.get("immutable")),
    }
    if payload.get("actor_id"):
        state["speaker"] = str(payload["actor_id"])
    if expires := moment(payload.get("expiration_date")):
        state["expiration_date"] = expires.date().isoformat()
    return state


def _entry(version: int, change: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the history."""
    at = _time(change).isoformat()
    actor = change.get("actor_id")
    reason = "Imported from Mem0." if not actor else f"Imported from Mem0; by {actor}."
    return {
        "version": version,
        "event": change["event"],
        "old_text": change["old_memory"],
        "new_text": change["new_memory"],
        "metadata": dict(metadata),
        "reason": reason,
        "valid_from": at,
        "created_at": at,
    }


def _change(event: str, old: str | None, new: str, at: datetime) -> dict[str, Any]:
    """A change as a row of Mem0's history."""
    return {"event": event, "old_memory": old, "new_memory": new, "created_at": at.isoformat()}


def _time(change: Mapping[str, Any]) -> datetime:
    times = (moment(change.get(name)) for name in ("updated_at", "created_at"))
    return next((time for time in times if time is not None), datetime.fromtimestamp(0, UTC))


def _uuid(text: str) -> UUID:
    """The id as a UUID; another id gives the same UUID each time."""
    try:
        return UUID(text)
    except ValueError:
        return uuid5(UUID(int=0), f"mem0:{text}")


def _rows(path: Path, query: str, *values: object) -> Iterator[dict[str, Any]]:
    """Rows of a SQLite file that is opened for reading only."""
    if not path.is_file():
        raise StackError(f"{path} is not a file.")
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute(query, values):
            yield dict(row)


def _chroma(directory: Path, collection: str) -> dict[str, dict[str, Any]]:
    """Payloads of a directory of Chroma 1.x."""
    query = """SELECT e.embedding_id AS id, m.key AS name, m.string_value AS text,
               m.int_value AS number, m.float_value AS decimal, m.bool_value AS flag
        FROM embeddings e
        JOIN segments s ON s.id = e.segment_id
        JOIN collections c ON c.id = s.collection
        JOIN embedding_metadata m ON m.id = e.id
        WHERE c.name = ?"""
    payloads = defaultdict[str, dict[str, Any]](dict)
    for row in _rows(directory / "chroma.sqlite3", query, collection):
        flag = None if row["flag"] is None else bool(row["flag"])
        values = (row["text"], row["number"], row["decimal"], flag)
        payloads[row["id"]][row["name"]] = next((v for v in values if v is not None), None)
    return dict(payloads)


def _qdrant(directory: Path, collection: str) -> dict[str, dict[str, Any]]:
    """Payloads of a local directory of Qdrant's client, which stores pickled points."""
    path = directory / "collection" / collection / "storage.sqlite"
    points = [
        _Points(io.BytesIO(row["point"])).load() for row in _rows(path, "SELECT point FROM points")
    ]
    return {str(point.fields["id"]): dict(point.fields["payload"] or {}) for point in points}


async def _pgvector(url: str, collection: str) -> dict[str, dict[str, Any]]:
    """Payloads of a table of pgvector."""
    if not collection.replace("_", "").isalnum():
        raise StackError(f"{collection!r} is not the name of a table.")
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(f'SELECT id, payload FROM "{collection}"')  # noqa: S608
    finally:
        await connection.close()
    return {
        str(row["id"]): dict(orjson.loads(row["payload"]))
        if isinstance(row["payload"], str)
        else dict(row["payload"])
        for row in rows
    }


class _Point:
    """Stands for the classes of a pickled point: it keeps the fields, and runs no code of them."""

    fields: Mapping[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        fields = state.get("__dict__", state) if isinstance(state, dict) else {}
        self.fields = fields


class _Points(pickle.Unpickler):
    """Reader of pickled points. A pickle that needs any other class is refused."""

    def find_class(self, module: str, name: str) -> type[_Point]:
        if module.startswith("qdrant_client.") and name == "PointStruct":
            return _Point
        raise pickle.UnpicklingError(f"{module}.{name} is no class of a point")
