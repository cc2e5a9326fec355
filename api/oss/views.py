"""Responses in the shapes of Mem0's open-source server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid5

from api.memories.views import scope_ids
from api.search.views import scored
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.memories.history import HistoryEntry
from pipeline.search.latest import Hit
from pipeline.tenants.owners import Owner

# Outcomes of a receipt that the open-source server reports as results of an add.
STORED = frozenset({Outcome.ADD, Outcome.UPDATE, Outcome.DELETE})


def added(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The results of an add. With the id and status of its event, so that the receipt is at hand.

    `results` is empty and `status` is PENDING if the event has not ended in time.
    """
    return {
        "results": [_result(line) for line in answer.get("results", ()) if line["event"] in STORED],
        "event_id": answer["event_id"],
        "status": answer["status"],
    }


def _result(line: Mapping[str, Any]) -> dict[str, Any]:
    result = {"id": line["id"], "memory": line["memory"], "event": line["event"]}
    if line["event"] == Outcome.UPDATE:
        result["previous_memory"] = line.get("old_memory")
    return result


def memory(row: Memory) -> dict[str, Any]:
    """A memory; `hash` is the MD5 of its text, by which clients compare texts."""
    owners = {name: owner_id for name, owner_id in scope_ids(row.scope).items() if owner_id}
    return {
        "id": str(row.id),
        "memory": row.text,
        "hash": hashlib.md5(row.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": row.metadata or None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        **owners,
        **({"role": row.attributed_to} if row.attributed_to else {}),
        **({"expiration_date": row.expiration_date} if row.expiration_date else {}),
    }


def memories(rows: Sequence[Memory]) -> dict[str, Any]:
    """A list of memories."""
    return {"results": [memory(row) for row in rows]}


def hit(row: Hit, *, explain: bool) -> dict[str, Any]:
    """A search result; with `explain` also the parts of its score."""
    score = scored(row.score)
    assert isinstance(row.passage, Memory)  # this dialect searches no turns
    answer = memory(row.passage) | {"score": score["score"]}
    return answer | ({"score_details": score["score_breakdown"]} if explain else {})


def history(entry: HistoryEntry) -> dict[str, Any]:
    """One state of a memory, as a row of the open-source library's history table."""
    return {
        "id": str(uuid5(entry.memory_id, str(entry.version))),
        "memory_id": str(entry.memory_id),
        "old_memory": entry.old_text,
        "new_memory": entry.new_text,
        "event": entry.event,
        "created_at": entry.created_at,
        "updated_at": entry.created_at,
        "is_deleted": entry.event == Outcome.DELETE,
        "actor_id": None,
        "role": entry.message["role"] if entry.message else None,
    }


def entity(row: Owner) -> dict[str, Any]:
    """A user, agent or run with its number of memories."""
    return {
        "id": row.id,
        "type": row.kind,
        "total_memories": row.memories,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
