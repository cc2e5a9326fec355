"""Responses about memories: current state and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, NotRequired, TypeVar, cast
from uuid import uuid5

from typing_extensions import TypedDict

from api.events.responses import ReceiptLineJson, receipt_line
from api.http.shared_responses import (
    DoneJson,
    Id,
    PageKeysJson,
    ScopeIdsJson,
    SelectedFields,
    StoredTime,
    scope_ids,
)
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.events.event_view import ReceiptLine
from pipeline.memories.delete_by_filter import WouldDelete
from pipeline.memories.history import Author, AuthorKind, HistoryEntry
from pipeline.text.word_diff import DiffBudget, word_diff
from pipeline.versions.changes import (
    MOST_READ_CHARACTERS,
    MOST_SHOWN_CHARACTERS,
    ChangeKind,
    MemoryChange,
)

IN_PROGRESS = "Delete in progress. This may take some time."
# Days of the week as the Mem0 Platform names them.
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Fields = TypeVar("Fields", bound=Mapping[str, Any])


class TimePartsJson(TypedDict):
    """The parts of a time (UTC), as the Mem0 Platform names them."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    quarter: int
    week_of_year: int
    day_of_year: int
    day_of_week: str
    is_weekend: bool


class MemoryJson(ScopeIdsJson):
    """A memory. `timestamp` equals `said_at`, and `session_id` `run_id`: clients read either.

    `said_at`: time of the statement; `valid_from`: since when it holds in the world.
    """

    id: Id
    memory: str
    session_id: str | None
    metadata: dict[str, Any] | None
    categories: list[str]
    structured_attributes: TimePartsJson
    immutable: bool
    pinned: bool
    edited_at: datetime | None
    expiration_date: date | None
    attributed_to: str | None
    event_id: Id | None
    version: int
    timestamp: datetime
    said_at: datetime
    valid_from: datetime
    kind: str | None
    memory_type: str | None
    subject: str | None
    attribute: str | None
    slot: str | None
    speaker: str | None
    confidence: float | None
    created_at: StoredTime
    updated_at: StoredTime
    lifecycle_state: str
    replaced_by: Id | None
    synthesized: bool
    conflict_id: Id | None
    suggestion_id: Id | None


# A row of a list: the memory, or the fields of it that the request names.
MemoryRowJson = Annotated[MemoryJson, SelectedFields("MemoryRowJson")]


class MessageJson(TypedDict):
    """A message of an add."""

    role: str
    content: str
    name: NotRequired[str | None]


class MemoryOfOwnerJson(MemoryJson):
    """A memory with the message that it was extracted from."""

    input: list[MessageJson]
    is_updated: bool


class DeletedJson(DoneJson):
    """A deleted memory. `cascade_count`: with `delete_linked`, the number of linked memories."""

    cascade_count: NotRequired[int]


class WouldDeleteJson(TypedDict):
    """The receipt that a delete by filter would get."""

    dry_run: bool
    note: str
    cancelled: int
    results: list[ReceiptLineJson]


class FeedbackJson(TypedDict):
    """The rating of a memory."""

    id: Id
    feedback: str | None
    feedback_reason: str | None


class AuthorJson(TypedDict):
    """The author of a change: its kind, and the ids that it has."""

    type: AuthorKind
    event_id: NotRequired[Id]
    suggestion_id: NotRequired[Id]
    replay_id: NotRequired[Id]
    key: NotRequired[str | None]


class HistoryJson(ScopeIdsJson):
    """One entry of a memory's history. `new_memory` is empty after a DELETE."""

    id: Id
    memory_id: Id
    session_id: str | None
    input: list[MessageJson]
    old_memory: str | None
    new_memory: str
    event: str
    reason: str | None
    event_id: Id | None
    metadata: dict[str, Any] | None
    categories: list[str]
    version: int
    who: AuthorJson
    said_at: datetime
    valid_from: datetime
    stored_at: datetime
    created_at: datetime
    updated_at: datetime


class ExcerptJson(MemoryJson):
    """A memory; `truncated`: with the start of its text."""

    truncated: NotRequired[bool]


class ChangeBetweenJson(TypedDict):
    """A memory at two times. `diff`: the changed text; None for one that is added, gone or long."""

    id: Id
    change: ChangeKind
    before: ExcerptJson | None
    after: ExcerptJson | None
    diff: str | None


class ChangeCountsJson(TypedDict):
    """Numbers of all changes between two times."""

    added: int
    changed: int
    gone: int


class ChangePageJson(PageKeysJson):
    """A page of changes between two times, and the numbers of all."""

    results: list[ChangeBetweenJson]
    counts: ChangeCountsJson
    incomplete: bool


def memory(row: Memory) -> MemoryJson:
    """A memory with all its fields."""
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


def of_owner(row: Memory, source: Mapping[str, str] | None) -> MemoryOfOwnerJson:
    """A memory with the message that it was extracted from."""
    return {**memory(row), "input": messages(source), "is_updated": row.version > 1}


def lifecycle(row: Memory) -> str:
    """State of a memory as the Mem0 Platform names it: active, superseded or merged."""
    if row.state == "ACTIVE" and row.superseded_by is not None:
        return "superseded"
    return row.state.lower()


def would_delete(row: WouldDelete) -> WouldDeleteJson:
    """The receipt that a delete by filter would get."""
    return {
        "dry_run": True,
        "note": row.note,
        "cancelled": row.cancelled,
        "results": [
            receipt_line(ReceiptLine(Outcome.DELETE, memory_id, text, text, reason, 0))
            for memory_id, text, reason in row.lines
        ],
    }


def attributes(at: datetime) -> TimePartsJson:
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


def only(row: Fields, fields: list[str] | None) -> Fields:
    """The given fields, and always the id; `metadata.x` selects one key of the metadata."""
    if not fields:
        return row
    shown = {key: value for key, value in row.items() if key in ("id", *fields)}
    inside = [name.removeprefix("metadata.") for name in fields if name.startswith("metadata.")]
    if inside and "metadata" not in shown:
        metadata = row["metadata"] or {}
        shown["metadata"] = {key: metadata[key] for key in inside if key in metadata} or None
    return cast("Fields", shown)


def history(entry: HistoryEntry) -> HistoryJson:
    """One entry of a memory's history."""
    return {
        "id": str(uuid5(entry.memory_id, str(entry.version))),
        "memory_id": str(entry.memory_id),
        **scope_ids(entry.scope),
        "session_id": entry.scope.run_id,
        "input": messages(entry.message),
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


def author(row: Author) -> AuthorJson:
    """The author of a change."""
    who: AuthorJson = {"type": row.kind}
    for name in ("event_id", "suggestion_id", "replay_id"):
        if value := getattr(row, name):
            who[name] = str(value)
    if row.kind in (AuthorKind.API, AuthorKind.UNDO):
        who["key"] = row.key
    return who


def messages(stored: Mapping[str, str] | None) -> list[MessageJson]:
    """The message that a memory was extracted from, as a list; empty without one."""
    return [cast("MessageJson", stored)] if stored else []


def changes(rows: Sequence[MemoryChange]) -> list[ChangeBetweenJson]:
    """Differences of memories between two times.

    `diff`: None for a memory that was added or is gone, for a text that was not read whole, and if
    the comparisons of the response are used up. The work of all rows together is bounded.
    """
    budget = DiffBudget()
    return [_change(row, budget) for row in rows]


def change_counts(counts: Mapping[ChangeKind, int]) -> ChangeCountsJson:
    """Numbers of all changes between two times."""
    return {
        "added": counts[ChangeKind.ADDED],
        "changed": counts[ChangeKind.CHANGED],
        "gone": counts[ChangeKind.GONE],
    }


def _change(row: MemoryChange, budget: DiffBudget) -> ChangeBetweenJson:
    before, after = row.before, row.after
    whole = before and after and max(len(before.text), len(after.text)) <= MOST_READ_CHARACTERS
    return {
        "id": str(row.memory_id),
        "change": row.kind,
        "before": _excerpt(before) if before else None,
        "after": _excerpt(after) if after else None,
        "diff": word_diff(before.text, after.text, budget) if before and after and whole else None,
    }


def _excerpt(row: Memory) -> ExcerptJson:
    """The memory with the start of its text; `truncated` says that it is cut."""
    shown = cast("ExcerptJson", memory(row))
    if len(row.text) > MOST_SHOWN_CHARACTERS:
        shown["memory"] = row.text[:MOST_SHOWN_CHARACTERS]
        shown["truncated"] = True
    return shown
