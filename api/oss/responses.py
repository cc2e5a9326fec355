"""Responses in the shapes of Mem0's open-source server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, NotRequired, cast
from uuid import uuid5

from typing_extensions import TypedDict

from api.http.shared_responses import EventStatus, Id, StoredTime, json_of, scope_ids, words
from api.search.responses import ScoreBreakdownJson, scored
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.memories.history import HistoryEntry
from pipeline.search.ranking.latest import Hit
from pipeline.tenants.owners import Owner

# Outcomes of a receipt that the open-source server reports as results of an add.
STORED = frozenset({Outcome.ADD, Outcome.UPDATE, Outcome.DELETE})


class OssResultJson(TypedDict):
    """A result of an add. `previous_memory`: the text before an UPDATE."""

    id: Id
    memory: str
    event: Annotated[str, words("ADD", "UPDATE", "DELETE")]
    previous_memory: NotRequired[str | None]


class OssAddedJson(TypedDict):
    """The results of an add, with the id and status of its event.

    `results` is empty and `status` is PENDING if the event has not ended in time.
    """

    results: list[OssResultJson]
    event_id: Id
    status: EventStatus


class OssMemoryJson(TypedDict):
    """A memory with the ids that it has; `hash` is the MD5 of its text."""

    id: Id
    memory: str
    hash: str
    metadata: dict[str, Any] | None
    created_at: StoredTime
    updated_at: StoredTime
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    app_id: NotRequired[str]
    run_id: NotRequired[str]
    role: NotRequired[str]
    expiration_date: NotRequired[date]


class OssHitJson(OssMemoryJson):
    """A search result; with `explain` also the parts of its score."""

    score: float
    score_details: NotRequired[ScoreBreakdownJson]


class OssHistoryJson(TypedDict):
    """One state of a memory, as a row of the open-source library's history table."""

    id: Id
    memory_id: Id
    old_memory: str | None
    new_memory: str | None
    event: str
    created_at: datetime
    updated_at: datetime
    is_deleted: bool
    actor_id: str | None
    role: str | None


class OssEntityJson(TypedDict):
    """A user, agent or run with its number of memories."""

    id: str
    type: Annotated[str, words("user", "agent", "run")]
    total_memories: int
    created_at: datetime
    updated_at: datetime


def added(answer: Mapping[str, Any]) -> OssAddedJson:
    """The results of an add, with the id and status of its event."""
    return {
        "results": [_result(line) for line in answer.get("results", ()) if line["event"] in STORED],
        "event_id": answer["event_id"],
        "status": answer["status"],
    }


def _result(line: Mapping[str, Any]) -> OssResultJson:
    result: OssResultJson = {"id": line["id"], "memory": line["memory"], "event": line["event"]}
    if line["event"] == Outcome.UPDATE:
        result["previous_memory"] = line.get("old_memory")
    return result


def memory(row: Memory) -> OssMemoryJson:
    """A memory; `hash` is the MD5 of its text, by which clients compare texts."""
    response = {
        "id": str(row.id),
        "memory": row.text,
        "hash": hashlib.md5(row.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": row.metadata or None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
    named = {**scope_ids(row.scope), "role": row.attributed_to}
    more = named | {"expiration_date": row.expiration_date}
    return cast("OssMemoryJson", response | {name: value for name, value in more.items() if value})


def hit(row: Hit, *, explain: bool) -> OssHitJson:
    """A search result; with `explain` also the parts of its score."""
    score = scored(row.score)
    assert isinstance(row.passage, Memory)  # this dialect searches no turns
    answer = cast("OssHitJson", memory(row.passage) | {"score": score["score"]})
    if explain:
        answer["score_details"] = score["score_breakdown"]
    return answer


def history(entry: HistoryEntry) -> OssHistoryJson:
    """One state of a memory, as a row of the open-source library's history table."""
    return json_of(
        OssHistoryJson,
        entry,
        id=uuid5(entry.memory_id, str(entry.version)),
        old_memory=entry.old_text,
        new_memory=entry.new_text,
        updated_at=entry.created_at,
        is_deleted=entry.event == Outcome.DELETE,
        actor_id=None,
        role=entry.message["role"] if entry.message else None,
    )


def entity(row: Owner) -> OssEntityJson:
    """A user, agent or run with its number of memories."""
    return json_of(OssEntityJson, row, type=row.kind, total_memories=row.memories)
