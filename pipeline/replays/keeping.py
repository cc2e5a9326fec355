"""Memories that a replay produced again without a difference: a switch leaves them in place.

They keep their ids, and with them their history, their feedback and references by id.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.rollback import PastState, effective
from pipeline.ledger.tables import events, memories
from pipeline.memories.rows import states_of
from pipeline.replays.store import Shadow

# What a model thinks of a fact: it varies from one answer to the next, and is not compared.
MODELS_VIEW = ("confidence", "cardinality")
# Columns that must be equal in both rows, besides the text and the history.
ALIKE = (
    "metadata",
    "categories",
    "attributed_to",
    "immutable",
    "expiration_date",
    "message_ordinal",
    "said_at",
    "valid_from",
    "kind",
    "memory_type",
    "subject",
    "attribute",
    "speaker",
)


async def unchanged(connection: AsyncConnection, shadow: Shadow) -> frozenset[UUID]:
    """Return ids of the scope's memories that are the same in the shadow.

    Text, columns and history must be equal; the history, because an undo goes back along it.
    """
    ours, theirs = memories.alias("ours"), memories.alias("theirs")
    alike = (theirs.c[name].is_not_distinct_from(ours.c[name]) for name in ALIKE)
    query = (
        select(ours.c.id, theirs.c.id.label("copy"))
        .join(theirs, theirs.c.text_hash == ours.c.text_hash)
        .where(ours.c.lane_id == shadow.scope.lane_id, theirs.c.lane_id == shadow.apart.lane_id)
        .where(ours.c.state == "ACTIVE", theirs.c.state == "ACTIVE", and_(*alike))
    )
    rows = (await connection.execute(query)).all()
    originals = await _originals(connection, shadow)
    before = await states_of(connection, [row.id for row in rows])
    after = await states_of(connection, [row.copy for row in rows])
    return frozenset(
        row.id
        for row in rows
        if [_comparable(state) for state in effective(before[row.id])]
        == [_comparable(_in_scope(state, originals)) for state in effective(after[row.copy])]
    )


async def _originals(connection: AsyncConnection, shadow: Shadow) -> dict[UUID, UUID]:
    """Map each copied event of the shadow to the scope's event."""
    query = select(events.c.id, events.c.copy_of).where(events.c.project_id == shadow.id)
    return {row.id: row.copy_of for row in await connection.execute(query)}


def _in_scope(state: PastState, originals: dict[UUID, UUID]) -> PastState:
    return replace(state, event_id=originals[state.event_id]) if state.event_id else state


def _comparable(state: PastState) -> PastState:
    return replace(state, structure={**state.structure, **dict.fromkeys(MODELS_VIEW)})
