"""Responses about memories: current state and history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid5

from api.events.usage import DAYS
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.scope import Scope
from pipeline.memories.delete_by_filter import WouldDelete
from pipeline.memories.history import Author, AuthorKind, HistoryEntry
from pipeline.text.word_diff import DiffBudget, word_diff
from pipeline.versions.changes import (
    MOST_READ_CHARACTERS,
    MOST_SHOWN_CHARACTERS,
    MemoryChange,
)


def memory(row: Memory) -> dict[str, Any]:
    """A memory with all its fields."""
    # run_id and session_id are the same: the clients disagree on the name.
    return {
        "id": str(row.id),
        "memory": row.text,
        **scope_ids(row.scope),
        "session_id": row.scope.run_id,
        "metadata": row.metadata or None,
        "categories": list(row.categories),
        "structured_attributes": attributes(row.valid_from),
        "immutable": row.immutable,
        "pinned": row.pinned,
        "edited_at": row.edited_at,
        "expiration_date": row.expiration_date,
        "attributed_to": row.attributed_to,
        "event_id": str(row.event_id) if row.event_id else None,
        "version": row.version,
        "timestamp": row.said_at,
        "said_at": row.said_at,
        "valid_from": row.valid_from,
        "kind": row.kind,
        "memory_type": row.memory_type,
        "subject": row.subject,
        "attribute": row.attribute,
        "slot": row.slot,
        "speaker": row.speaker,
        "confidence": row.confidence,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "lifecycle_state": lifecycle(row),
        "replaced_by": str(row.superseded_by) if row.superseded_by else None,
        "synthesized": False,
        "conflict_id": str(row.conflict_id) if row.conflict_id else None,
        "suggestion_id": str(row.suggestion_id) if row.suggestion_id else None,
    }


def lifecycle(row: Memory) -> str:
    """State of a memory as the Mem0 Platform names it: active, superseded or merged."""
    if row.state == "ACTIVE" and row.superseded_by is not None:
        return "superseded"
    return row.state.lower()


def would_delete(row: WouldDelete) -> dict[str, Any]:
    """The receipt that a delete by filter would get."""
    return {
        "dry_run": True,
        "note": row.note,
        "cancelled": row.cancelled,
        "results": [
            {
                "id": str(memory_id),
                "event": Outcome.DELETE,
                "memory": text,
                "data": {"memory": text},
                "old_memory": text,
                "reason": reason,
                "message": 0,
            }
            for memory_id, text, reason in row.lines
        ],
    }


def attributes(at: datetime) -> dict[str, Any]:
    """The parts of a memory's time (UTC), as the Mem0 Platform names them."""
    at = at.astimezone(UTC)
    _, week, weekday = at.isocalendar()
    return {
        "year": at.year,
        "month": at.month,
        "day": at.day,
        "hour": at.hour,
        "minute": at.minute,
        "quarter": (at.month + 2) // 3,
        "week_of_year": week,
        "day_of_year": at.timetuple().tm_yday,
        "day_of_week": DAYS[weekday - 1],
        "is_weekend": weekday > 5,
    }


def only(row: dict[str, Any], fields: list[str] | None) -> dict[str, Any]:
    """The given fields, and always the id; `metadata.x` selects one key of the metadata."""
    if not fields:
        return row
    shown = {key: row[key] for key in row if key in ("id", *fields)}
    inside = [name.removeprefix("metadata.") for name in fields if name.startswith("metadata.")]
    if inside and "metadata" not in shown:
        metadata = row["metadata"] or {}
        shown["metadata"] = {key: metadata[key] for key in inside if key in metadata} or None
    return shown


def history(entry: HistoryEntry) -> dict[str, Any]:
    """One entry of a memory's history."""
    return {
        "id": str(uuid5(entry.memory_id, str(entry.version))),
        "memory_id": str(entry.memory_id),
        **scope_ids(entry.scope),
        "session_id": entry.scope.run_id,
        "input": [entry.message] if entry.message else [],
        "old_memory": entry.old_text,
        "new_memory": entry.new_text or "",  # documented as a string, after a DELETE too
        "event": entry.event,
        "reason": entry.reason,
        "event_id": str(entry.event_id) if entry.event_id else None,
        "metadata": entry.metadata or None,
        "categories": list(entry.categories),
        "version": entry.version,
        "who": author(entry.author),
        "said_at": entry.said_at,
        "valid_from": entry.valid_from,
        "stored_at": entry.created_at,
        "created_at": entry.created_at,
        "updated_at": entry.created_at,
    }


def author(row: Author) -> dict[str, Any]:
    """Author of a change: its kind, and the ids that it has."""
    ids = {
        "event_id": row.event_id,
        "suggestion_id": row.suggestion_id,
        "replay_id": row.replay_id,
    }
    who: dict[str, Any] = {"type": row.kind}
    who |= {name: str(known) for name, known in ids.items() if known}
    return who | ({"key": row.key} if row.kind in (AuthorKind.API, AuthorKind.UNDO) else {})


def changes(rows: Sequence[MemoryChange]) -> list[dict[str, Any]]:
    """Differences of memories between two times.

    `diff`: None for a memory that was added or is gone, for a text that was not read whole, and if
    the comparisons of the response are used up. The work of all rows together is bounded.
    """
    budget = DiffBudget()
    return [_change(row, budget) for row in rows]


def _change(row: MemoryChange, budget: DiffBudget) -> dict[str, Any]:
    before, after = row.before, row.after
    whole = before and after and max(len(before.text), len(after.text)) <= MOST_READ_CHARACTERS
    return {
        "id": str(row.memory_id),
        "change": row.kind,
        "before": _excerpt(before) if before else None,
        "after": _excerpt(after) if after else None,
        "diff": word_diff(before.text, after.text, budget) if before and after and whole else None,
    }


def _excerpt(row: Memory) -> dict[str, Any]:
    """The memory with the start of its text; `truncated` says that it is cut."""
    shown = memory(row) | {"memory": row.text[:MOST_SHOWN_CHARACTERS]}
    return shown | ({"truncated": True} if len(row.text) > MOST_SHOWN_CHARACTERS else {})


def scope_ids(scope: Scope) -> dict[str, str | None]:
    """The four ids of a scope."""
    return {
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "app_id": scope.app_id,
        "run_id": scope.run_id,
    }
