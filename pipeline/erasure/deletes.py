"""The rows that an erasure deletes: one DELETE per store, referring rows first.

Every statement finds its rows by an index, from the owner's lanes or memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Delete, Select, Table, and_, any_, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.tenants import ProjectId
from pipeline.erasure.locking import OwnerKey
from pipeline.erasure.sql import statement
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.tables import (
    conflicts,
    curator_runs,
    entities,
    events,
    feedback,
    graph_receipts,
    idempotency_keys,
    kept_answers,
    memories,
    memory_accesses,
    memory_history,
    messages,
    past_states,
    rebuilt,
    receipts,
    relations,
    shadows,
    suggestions,
    summaries,
    summary_states,
    turn_vectors,
    usage_daily,
)
from pipeline.ledger.tables.webhooks import webhook_deliveries
from pipeline.replays.store import read, sweep_out
from pipeline.tenants.owners import KINDS

# The kinds of owners from the widest to the narrowest. Those after a kind belong to it.
WIDEST_FIRST = tuple(KINDS)
STORES = (
    *("receipts", "graph_receipts", "relations", "entities", "past_states", "history", "conflicts"),
    *("curator_runs", "suggestions", "summaries", "summary_states", "kept_answers", "feedback"),
    *("memory_accesses", "rebuilt_vectors", "turn_vectors", "memories", "messages"),
    *("webhook_deliveries", "idempotency_keys"),
)


async def delete_rows(
    connection: AsyncConnection,
    project_id: ProjectId,
    owner: OwnerKey,
    lane_ids: Sequence[UUID],
    memory_ids: Sequence[UUID],
) -> dict[str, int]:
    """Delete every row with a text or an id of the owner. Returns the counts, by store."""
    counts = dict.fromkeys(STORES, 0)
    for store, rows in _deletes(lane_ids, memory_ids):
        counts[store] += (await connection.execute(rows)).rowcount
    if owner.kind == "user":
        paid = and_(usage_daily.c.project_id == project_id, usage_daily.c.user_id == owner.id)
        counts["usage"] = (await connection.execute(delete(usage_daily).where(paid))).rowcount
    values = {
        "project_id": project_id,
        "kind": owner.kind,
        "owner_id": owner.id,
        "lane_ids": list(lane_ids),
        "narrower": WIDEST_FIRST[WIDEST_FIRST.index(owner.kind) + 1 :],
    }
    registered = await connection.execute(statement("delete_owners"), values)
    return counts | {"entity_rows": registered.rowcount}


async def drop_shadows(
    connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey
) -> Sequence[UUID]:
    """Delete replays of the owner's scopes, which are copies. Returns the ids of their memories."""
    of_owner = and_(shadows.c.project_id == project_id, shadows.c[KINDS[owner.kind]] == owner.id)
    shadow_ids = (await connection.scalars(select(shadows.c.id).where(of_owner))).all()
    if not shadow_ids:
        return ()
    copies = select(memories.c.id).where(among(memories.c.project_id, shadow_ids))
    memory_ids = (await connection.scalars(copies)).all()
    for shadow_id in shadow_ids:
        await sweep_out(connection, await read(connection, project_id, shadow_id))
    await connection.execute(delete(shadows).where(of_owner))
    return memory_ids


def turns_of(lane_ids: Sequence[UUID]) -> Select[tuple[UUID]]:
    """Select the index ids of the turns in these lanes."""
    return select(turn_vectors.c.id).where(_in(turn_vectors.c.event_id, _events_of(lane_ids)))


def _deletes(lane_ids: Sequence[UUID], memory_ids: Sequence[UUID]) -> Iterator[tuple[str, Delete]]:
    """Yield the DELETEs; none for rows of memories if there are none, or of lanes."""
    if memory_ids:
        in_history = select(memory_history.c.event_id).where(
            among(memory_history.c.memory_id, memory_ids), memory_history.c.event_id.is_not(None)
        )
        about = and_(_in(receipts.c.event_id, in_history), among(receipts.c.memory_id, memory_ids))
        yield "receipts", delete(receipts).where(about)
    if not lane_ids:
        return
    event_ids = _events_of(lane_ids)

    def of_events(table: Table) -> Delete:
        return delete(table).where(_in(table.c.event_id, event_ids))

    def of_lanes(table: Table) -> Delete:
        return delete(table).where(among(table.c.lane_id, lane_ids))

    yield "receipts", of_events(receipts)
    yield "graph_receipts", of_events(graph_receipts)
    yield "relations", of_lanes(relations)
    yield "entities", of_lanes(entities)
    yield "conflicts", of_lanes(conflicts)
    # Before the suggestions, as the curator locks them.
    yield "curator_runs", of_lanes(curator_runs)
    yield "suggestions", of_lanes(suggestions)
    yield "summaries", of_lanes(summaries)
    yield "summary_states", of_lanes(summary_states)
    yield "kept_answers", of_lanes(kept_answers)
    if memory_ids:
        for store, table in (
            ("past_states", past_states),
            ("history", memory_history),
            ("feedback", feedback),
            ("memory_accesses", memory_accesses),
        ):
            yield store, delete(table).where(among(table.c.memory_id, memory_ids))
    of_turns = _in(rebuilt.c.memory_id, turns_of(lane_ids))
    built = or_(among(rebuilt.c.memory_id, memory_ids), of_turns)
    yield "rebuilt_vectors", delete(rebuilt).where(built)
    yield "turn_vectors", of_events(turn_vectors)
    if memory_ids:
        yield "memories", delete(memories).where(among(memories.c.id, memory_ids))
    yield "messages", of_lanes(messages)
    yield "webhook_deliveries", of_lanes(webhook_deliveries)
    yield "idempotency_keys", of_events(idempotency_keys)


def _events_of(lane_ids: Sequence[UUID]) -> Select[tuple[UUID]]:
    """Select the events in these lanes."""
    return select(events.c.id).where(among(events.c.lane_id, lane_ids))


def _in(column: ColumnElement[Any], ids: Select[Any]) -> ColumnElement[bool]:
    """Match rows with one of these ids, read first as an array.

    A generic plan then looks each id up by the index. For IN (SELECT …) it may read the table.
    """
    return column == any_(func.array(ids.scalar_subquery()))
