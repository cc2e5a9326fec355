"""Lines of one scope as rows of the ledger, with the receipt of the import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pipeline.domain.events import EventType
from pipeline.domain.facts import Outcome
from pipeline.domain.graph.values import node_id
from pipeline.domain.messages import Role
from pipeline.domain.scope import Scope
from pipeline.text import terms
from pipeline.text.equality import text_hash
from pipeline.text.times.past import current_slot
from pipeline.text.tokens import tokens
from pipeline.transfer.records import (
    ConflictRecord,
    EntityRecord,
    EventRecord,
    MemoryRecord,
    MemoryState,
    RelationRecord,
    ScopedRecord,
    SummaryRecord,
)

IMPORTED = "Imported."
KNOWN_ID = "A memory with this id is stored already; it stays as it is."
SCOPE_IDS = {"user_id", "agent_id", "app_id", "run_id"}


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows that the ledger has already: ids, keys of entities, and active texts of the scope."""

    ids: frozenset[UUID] = frozenset()
    entity_keys: frozenset[str] = frozenset()
    texts: Mapping[bytes, UUID] = field(default_factory=dict)


@dataclass(slots=True)
class ImportPlan:
    """Rows to insert by table, the memories' receipt, and the number of lines by type.

    `texts`: the texts to embed; `vector_of`: for each row with a vector, its place in `texts`.
    """

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    receipt: list[dict[str, Any]] = field(default_factory=list)
    new: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)
    texts: dict[str, int] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The numbers of lines, for the event of the import."""
        note = f"Imported {_counted(self.new) or 'nothing'}."
        return f"{note} Stored before: {_counted(self.stored)}." if self.stored else note

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Insert a row into a table."""
        self.rows.setdefault(table, []).append(row)

    def embed(self, text: str) -> int:
        """The place of a text among those to embed."""
        return self.texts.setdefault(text, len(self.texts))


def ids_of(records: Sequence[ScopedRecord]) -> set[UUID]:
    """Ids of the rows that the lines would insert."""
    ids = {record.id for record in records if hasattr(record, "id")}
    for record in records:
        if isinstance(record, MemoryRecord):
            ids |= {state.id for state in record.past_states}
    return ids


def plan(records: Sequence[ScopedRecord], scope: Scope, stored: Stored) -> ImportPlan:
    """The rows of the lines. A line whose rows are stored is counted, and changes nothing."""
    made = ImportPlan()
    seen, texts = set(stored.ids), dict(stored.texts)
    for record in records:
        match record:
            case MemoryRecord():
                added = _memory(record, made, seen, texts)
            case EntityRecord():
                added = record.key not in stored.entity_keys
                _entity(record, scope, made)
            case SummaryRecord():
                added = True
                made.add("summaries", _row(record))
            case EventRecord() | RelationRecord() | ConflictRecord():
                added = record.id not in seen
                if added:
                    _add_rows(record, made)
                    seen.add(record.id)
        (made.new if added else made.stored)[record.type] += 1
    return made


def _add_rows(record: EventRecord | RelationRecord | ConflictRecord, made: ImportPlan) -> None:
    match record:
        case EventRecord():
            _event(record, made)
        case RelationRecord():
            ends = [_row(end) for end in record.past_ends]
            made.add("relations", _row(record) | {"past_ends": ends or None})
        case ConflictRecord():
            _conflict(record, made)


def _event(record: EventRecord, made: ImportPlan) -> None:
    """Add an event with its messages and receipts."""
    searched = record.event_type == EventType.ADD and record.options.get("infer") is not False
    made.add(
        "events",
        _row(record, "messages", "receipt", "graph_receipt")
        | {
            "place": len(made.rows.get("events", ())),
            "tokens": max(1, sum(tokens(message.content) for message in record.messages)),
        },
    )
    for ordinal, message in enumerate(record.messages):
        spoken = message.role not in (Role.SYSTEM, Role.TOOL) and bool(message.content.strip())
        made.add(
            "messages",
            message.model_dump(mode="json")
            | {
                "event_id": record.id,
                "ordinal": ordinal,
                "terms": terms.terms(message.content),
                "searched": searched and spoken,
            },
        )
    for ordinal, line in enumerate(record.receipt):
        made.add("receipts", _row(line) | {"event_id": record.id, "ordinal": ordinal})
    for ordinal, effect in enumerate(record.graph_receipt):
        made.add("graph_receipts", _row(effect) | {"event_id": record.id, "ordinal": ordinal})


def _memory(
    record: MemoryRecord, made: ImportPlan, seen: set[UUID], texts: dict[bytes, UUID]
) -> bool:
    """Add a memory, unless its id is stored, or another active memory of the scope has its text."""
    digest = record.id.bytes if record.copy_of_text else text_hash(record.text)
    holder = texts.get(digest) if record.state == "ACTIVE" else None
    if record.id in seen:
        outcome, reason, memory_id = Outcome.NOOP, KNOWN_ID, record.id
    elif holder is not None:
        outcome, reason, memory_id = Outcome.NOOP, f"Memory {holder} has this text.", holder
    else:
        outcome, reason, memory_id = Outcome.ADD, IMPORTED, record.id
    made.receipt.append(
        {"outcome": outcome, "memory_id": memory_id, "text": record.text, "reason": reason}
    )
    if outcome is Outcome.NOOP:
        return False
    seen.add(record.id)
    if record.state == "ACTIVE":
        texts[digest] = record.id
    own = {"id": record.id, "text_hash": digest.hex(), "forgotten_at": record.forgotten_at}
    made.add("memories", _state(record, made) | own)
    _past_states(record, made, seen)
    for entry in record.history:
        made.add("history", _row(entry) | {"memory_id": record.id})
    if record.feedback is not None:
        made.add("feedback", _row(record.feedback) | {"memory_id": record.id})
    return True


def _past_states(record: MemoryRecord, made: ImportPlan, seen: set[UUID]) -> None:
    """Add the past states of a memory whose ids are not stored."""
    for state in record.past_states:
        if state.id not in seen:
            seen.add(state.id)
            own = {"id": state.id, "memory_id": record.id, "replaced_at": state.replaced_at}
            made.add("past_states", _state(state, made) | own)


def _state(state: MemoryState, made: ImportPlan) -> dict[str, Any]:
    """The columns of a state, and the place of its vector."""
    return {
        **{name: getattr(state, name) for name in MemoryState.model_fields},
        "slot": current_slot(state.subject, state.attribute, state.text),
        "terms": terms.terms(state.text),
        "vector": made.embed(state.text),
    }


def _entity(record: EntityRecord, scope: Scope, made: ImportPlan) -> None:
    """Add an entity, with the id that its key has in the scope."""
    merges = [
        _row(merge) | {"merged_into": node_id(scope, merge.merged_into)}
        for merge in record.past_merges
    ]
    own = {
        "id": node_id(scope, record.key),
        "name_key": record.key,
        "merged_key": record.merged_into,
        "merged_into": record.merged_into and node_id(scope, record.merged_into),
        "root_key": record.root,
        "root_id": record.root and node_id(scope, record.root),
        "past_merges": merges or None,
    }
    made.add("entities", _row(record, "key", "merged_into", "root", "past_merges") | own)


def _conflict(record: ConflictRecord, made: ImportPlan) -> None:
    made.add("conflicts", _row(record, "members"))
    pairs = {(member.memory_id, member.against_id): member for member in record.members}
    for member in pairs.values():
        made.add("conflict_members", _row(member) | {"conflict_id": record.id})


def _row(record: Any, *without: str) -> dict[str, Any]:
    """The fields of a line as columns."""
    names = type(record).model_fields.keys() - SCOPE_IDS - {"type", *without}
    return {name: getattr(record, name) for name in names}


def _counted(lines: Counter[str]) -> str:
    """The numbers of lines by type, in words."""
    plurals = {"memory": "memories", "entity": "entities", "summary": "summaries"}
    parts = [
        f"{number} {name if number == 1 else plurals.get(name, f'{name}s')}"
        for name, number in sorted(lines.items())
    ]
    return ", ".join(parts)
