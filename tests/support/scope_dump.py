"""A scope's whole store as text; the dumps of two scopes with equal content are byte-equal.

Ids are replaced by the order in which they first appear, and the system's own stamps (when
something was written) are left out. Content stays: texts, reasons, and the dates that users gave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, Row, Table, select

from pipeline.domain.scope import Scope
from pipeline.ledger.tables import (
    entities,
    events,
    graph_receipts,
    memories,
    memory_history,
    messages,
    past_states,
    receipts,
    relations,
    summaries,
)
from pipeline.stores import Ledger


class Names:
    """Stable names of ids, such as `event-1` or `memory-3`: kind and order of first appearance."""

    def __init__(self) -> None:
        self._given: dict[UUID, str] = {}

    def of(self, kind: str, known: UUID | None) -> str | None:
        if known is None:
            return None
        count = sum(name.startswith(kind) for name in self._given.values())
        return self._given.setdefault(known, f"{kind}-{count + 1}")


async def dump(ledger: Ledger, scope: Scope) -> bytes:
    names = Names()
    log = await _rows(ledger, events, events.c.lane_id == scope.lane_id, events.c.seq)
    for event in log:
        names.of("event", event.id)
    ids = [event.id for event in log]
    message_rows = await _rows(
        ledger, messages, messages.c.lane_id == scope.lane_id, messages.c.seq, messages.c.ordinal
    )
    receipt_rows = await _rows(ledger, receipts, receipts.c.event_id.in_(ids), receipts.c.ordinal)
    receipt_rows = sorted(receipt_rows, key=lambda row: (ids.index(row.event_id), row.ordinal))
    for line in receipt_rows:
        names.of("memory", line.memory_id)
    memory_rows = await _rows(ledger, memories, memories.c.lane_id == scope.lane_id)
    past = await _rows(
        ledger, memory_history, memory_history.c.memory_id.in_([m.id for m in memory_rows])
    )
    replaced = await _rows(
        ledger, past_states, past_states.c.memory_id.in_([m.id for m in memory_rows])
    )
    nodes = await _rows(ledger, entities, entities.c.lane_id == scope.lane_id, entities.c.name_key)
    for node in nodes:
        names.of("entity", node.id)
    edges = await _rows(ledger, relations, relations.c.lane_id == scope.lane_id)
    versions = await _rows(
        ledger, summaries, summaries.c.lane_id == scope.lane_id, summaries.c.version
    )
    graph_lines = await _rows(ledger, graph_receipts, graph_receipts.c.event_id.in_(ids))
    sheet = {
        "events": [
            [names.of("event", e.id), e.status, e.failure_code, e.graph_status, e.note, e.options]
            for e in log
        ],
        "messages": [
            [m.seq, m.ordinal, m.role, m.name, m.content, m.said_at] for m in message_rows
        ],
        "receipts": [
            [
                names.of("event", r.event_id),
                r.ordinal,
                r.outcome,
                names.of("memory", r.memory_id),
                r.text,
                r.previous_text,
                r.reason,
                r.message_ordinal,
            ]
            for r in receipt_rows
        ],
        "memories": sorted(_memory(names, row) for row in memory_rows),
        "history": sorted(_state(names, row) for row in past),
        "past_states": sorted({_past_state(names, row) for row in replaced}),
        "entities": [_node(names, row) for row in nodes],
        "relations": sorted(_edge(names, row) for row in edges),
        "summaries": [[s.text, s.after_seq, s.until_seq, s.messages] for s in versions],
        "graph_receipts": sorted(_graph_line(names, row) for row in graph_lines),
    }
    return orjson.dumps(sheet, option=orjson.OPT_INDENT_2)


def _memory(names: Names, row: Row[Any]) -> list[str]:
    return _texts(
        names.of("memory", row.id),
        names.of("event", row.event_id),
        row.message_ordinal,
        row.text,
        row.metadata,
        row.attributed_to,
        row.state,
        row.immutable,
        row.expiration_date,
        row.version,
        row.embedder,
        hashlib.sha256(row.embedding).hexdigest(),
        row.said_at,
        row.valid_from,
        row.kind,
        row.memory_type,
        row.slot,
        row.speaker,
        row.confidence,
        names.of("memory", row.superseded_by),
    )


def _state(names: Names, row: Row[Any]) -> list[str]:
    return _texts(
        names.of("memory", row.memory_id),
        row.version,
        row.event,
        row.old_text,
        row.new_text,
        row.metadata,
        row.expiration_date,
        row.reason,
        names.of("event", row.event_id),
        row.message_ordinal,
        row.said_at,
        row.valid_from,
        row.structure,
    )


def _past_state(names: Names, row: Row[Any]) -> tuple[str, ...]:
    return tuple(
        _texts(
            names.of("memory", row.memory_id),
            row.version,
            row.text,
            row.metadata,
            row.state,
            row.expiration_date,
            row.valid_from,
        )
    )


def _node(names: Names, row: Row[Any]) -> list[str]:
    return _texts(
        names.of("entity", row.id),
        row.name,
        row.name_key,
        row.kind,
        row.plain_name,
        row.qualifier,
        row.mentions,
        names.of("entity", row.merged_into),
        names.of("entity", row.root_id),
        row.merge_reason,
    )


def _graph_line(names: Names, row: Row[Any]) -> list[str]:
    return _texts(
        names.of("event", row.event_id),
        row.ordinal,
        row.outcome,
        names.of("memory", row.memory_id),
        row.source,
        row.relation,
        row.destination,
        row.reason,
        row.message_ordinal,
    )


def _edge(names: Names, row: Row[Any]) -> list[str]:
    return _texts(
        names.of("entity", row.source_id),
        row.relation,
        names.of("entity", row.destination_id),
        names.of("event", row.event_id),
        row.message_ordinal,
        names.of("memory", row.memory_id),
        names.of("event", row.ended_by),
        row.valid_from,
        row.valid_to,
        row.expired_at is not None,
    )


def _texts(*values: object) -> list[str]:
    return [orjson.dumps(value).decode() for value in values]


async def _rows(
    ledger: Ledger, table: Table, where: ColumnElement[bool], *order: Any
) -> list[Row[Any]]:
    async with ledger.engine.connect() as connection:
        return list((await connection.execute(select(table).where(where).order_by(*order))).all())


def changed_lines(before: bytes, after: bytes) -> Iterable[tuple[bytes, bytes]]:
    """The first ten lines that differ between two dumps, for the message of a failed test."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return [pair for pair in pairs if pair[0] != pair[1]][:10]
